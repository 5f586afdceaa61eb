"""Charts made on the server: valid, inert, with words, and never a point that was not there."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.common.charts import LineChart, Marker, Series, bar, line_chart, thinned, time_bar


def path_of(shown: str) -> str:
    found = re.search(r'class="line [^"]*" d="([^"]*)"', shown)
    assert found
    return found[1]


def test_a_chart_has_words_for_who_cannot_see_it() -> None:
    shown = line_chart(LineChart("Policy support", [Series("Ada", [(0, 0.4), (60, 0.1)])], about="Ada falls."))
    assert 'role="img" aria-label="Policy support. Ada falls."' in shown
    assert "<title>Ada</title>" in shown
    assert "style=" not in shown  # SF-2


def test_a_gap_is_not_a_zero() -> None:
    shown = line_chart(LineChart("x", [Series("a", [(0, 1), (1, math.nan), (2, 1), (3, 2)])]))
    assert path_of(shown).count("M") == 2


def test_names_are_text() -> None:  # SF-2
    shown = line_chart(LineChart("<b>", [Series("<script>", [(0, 1), (1, 2)])], markers=[Marker(1, "<i>", "/x")]))
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert 'href="/x"' in shown


def test_an_empty_chart_says_so() -> None:
    assert "nothing yet" in line_chart(LineChart("x", []))


def test_a_flat_line_stands_in_the_middle() -> None:
    path = path_of(line_chart(LineChart("x", [Series("a", [(0, 3), (1, 3)])])))
    assert path == "M38 68L312 68"


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=600))
def test_thinning_keeps_the_extremes_and_the_order(values: list[float]) -> None:
    points = [(float(x), y) for x, y in enumerate(values)]
    kept = thinned(points, 50)
    assert len(kept) <= 2 * 51
    assert kept == sorted(kept)
    assert set(kept) <= set(points)
    assert {min(values), max(values)} <= {y for _, y in kept}


def test_bars_are_drawn_to_scale_and_stay_within_it() -> None:
    assert 'width="50"' in bar(1, 2)
    assert 'width="100"' in bar(9, 2)
    assert 'width="0"' in bar(math.nan, 2)
    assert 'x="50" y="0" width="25"' in time_bar(2, 3, 4)
    assert 'class="bar failed"' in time_bar(0, 0, 4, "failed")


def test_a_bar_is_decoration_unless_it_has_words() -> None:
    assert 'aria-hidden="true"' in bar(1, 2)
    assert 'aria-label="half"' in bar(1, 2, "half")


@pytest.mark.parametrize(
    ("value", "told"),
    [(28_000.0, "28,000"), (433.0, "433"), (0.25, "0.25"), (-1.0, "-1"), (1234.5, "1,234"), (1e6, "1,000,000")],
)
def test_an_axis_is_written_without_exponents(value: float, told: str) -> None:  # VW-1
    shown = line_chart(LineChart("x", [Series("a", [(0, 0), (1, 0)])], y_range=(min(0.0, value), max(0.0, value))))
    assert f">{told}</text>" in shown
    assert "e+" not in shown


def test_an_axis_says_in_a_word_what_it_counts() -> None:  # VW-1
    shown = line_chart(LineChart("x", [Series("a", [(0, 1), (1, 2)])], y_label="reactions <b>"))
    assert 'transform="rotate(-90)"' in shown
    assert ">reactions &lt;b&gt;</text>" in shown
    assert "rotate" not in line_chart(LineChart("x", []))
