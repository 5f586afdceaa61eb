"""Two studies side by side: what went otherwise, and what had been changed."""

import copy
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentlab.persona import comparing
from agentlab.persona.events import read_payload
from agentlab.persona.executors import Inline
from agentlab.persona.models import StudyDefinition, StudyRun, TraceEvent
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.showing import stance_shown
from agentlab.persona.study import read_study
from tests.pages import assert_no_inline_code, assert_valid_html

from .making import crowd, study, written

pytestmark = pytest.mark.django_db
HOSTILE = "<script>x</script>"


@pytest.fixture
def olga() -> User:
    return User.objects.create_user("olga")


@pytest.fixture
def ran(tmp_path: Path, olga: User):
    def run(content: dict, owner: User | None = olga) -> StudyRun:
        made = create(read_study(written(tmp_path, content)), executor="a test", owner_id=owner and owner.pk)
        return Runner(made, Inline()).go()

    return run


def _asked(user: User, a: object, b: object, **more: str) -> HttpResponse:
    client = Client()
    client.force_login(user)
    return client.get("/personas/compare", {"a": a, "b": b, **more})


def _page(user: User, a: StudyRun, b: StudyRun, **more: str) -> str:
    response = _asked(user, a.pk, b.pk, **more)
    assert response.status_code == 200
    assert_valid_html(response)
    assert_no_inline_code(response)
    return " ".join(response.content.decode().split())


def _paths(a: StudyRun, b: StudyRun) -> dict[str, tuple[str | None, str | None]]:
    found = comparing.changes(a, b)
    assert found is not None
    return {one.path: (one.first, one.second) for one in found.shown}


def test_medians_of_the_same_topic_are_in_one_chart_with_their_difference(ran, olga) -> None:  # PE-3
    a, b = ran(crowd(5, 8)), ran(crowd(5, 8, rate=0.9))
    html = _page(olga, a, b)
    assert html.count('<svg class="chart"') == 1
    assert all(f"study {run.pk}, median</title>" in html for run in (a, b))
    (row,) = comparing.finals(comparing.side(a), comparing.side(b))
    first, second, difference = map(float, row[1:])
    assert difference == pytest.approx(second - first, abs=0.0011)
    assert difference != 0
    cells = "".join(f'<td class="number">{cell}</td>' for cell in row[1:])
    assert f'<th scope="row">levy</th>{cells}' in html


def test_reactions_of_both_are_counted_side_by_side(ran, olga) -> None:  # PE-3
    a, b = ran(crowd(5, 8)), ran(crowd(5, 4, actions=["ignore", "reply"]))
    found = comparing.actions(comparing.side(a), comparing.side(b))
    assert (sum(one.first for one in found), sum(one.second for one in found)) == (40, 20)
    assert sum(one.second_share for one in found) == pytest.approx(1)
    assert not any(one.second for one in found if one.name in ("like", "share"))
    assert "reply" in _page(olga, a, b)


def test_what_was_changed_in_the_file_is_said_and_nothing_else(ran, olga) -> None:  # PE-4
    changed = copy.deepcopy(study(seed=8, cap=32, tier_b={"budget": 2}))
    changed["personas"][1]["beliefs"] = {"levy": 0.1}
    changed["stimuli"][0]["text"] = f"The levy fails {HOSTILE}"
    changed["stimuli"][2]["id"] = "leak"
    a, b = ran(study()), ran(changed)
    found = _paths(a, b)
    assert found["seed"] == ("7", "8")
    assert found["rules.cap"] == ("64", "32")
    assert (found["budget"], found["model"]) == (("0", "2"), ('""', '"rules"'))
    assert found["personas[bo].beliefs[levy].stance"] == ("-0.4", "0.1")
    assert found["stimuli[s1].text"] == ('"The levy passes committee"', f'"The levy fails {HOSTILE}"')
    assert found["stimuli[s3].text"] == ('"The old pool leaks"', None)
    assert found["stimuli[leak].text"] == (None, '"The old pool leaks"')
    assert not [path for path in found if path.startswith(("personas[ada]", "stimuli[s2]", "rules.k"))]
    html = _page(olga, a, b)
    assert "<del><b>−</b>seed: 7</del><ins><b>+</b>seed: 8</ins>" in html
    assert HOSTILE not in html


def test_another_order_of_the_same_stimuli_is_a_difference(ran) -> None:  # PE-4
    stimuli = [{"id": name, "text": name} for name in ("x", "y")]
    a, b = ran(study(stimuli=stimuli)), ran(study(stimuli=stimuli[::-1]))
    assert _paths(a, b) == {"order of stimuli": ('["x", "y"]', '["y", "x"]')}


def test_long_texts_that_differ_at_their_ends_do_not_look_alike_and_many_changes_are_cut_short(ran, olga) -> None:
    text = "word " * 500  # PE-4
    a, b = (ran(study(stimuli=[{"text": text + end}])) for end in "ab")
    first, second = _paths(a, b)["stimuli[s1].text"]
    assert first != second and len(first) < 400
    many = ran(crowd(300, 1))  # each with an age or a belief of its own
    found = comparing.changes(a, many)
    assert found is not None and found.more and len(found.shown) == comparing.LINES
    assert "More settings differ than are shown here." in _page(olga, a, many)


def test_what_everybody_has_changed_alike_is_said_once(ran) -> None:  # PE-4
    a, b = ran(crowd(5, 1)), ran(crowd(5, 1, topics=["levy", "pool"]))
    assert _paths(a, b) == {
        "rules.topics": ('["levy"]', '["levy", "pool"]'),
        "personas[p0, p1, p2, … 5 in all].beliefs[pool].stance": (None, "0.0"),
        "personas[p0, p1, p2, … 5 in all].beliefs[pool].confidence": (None, "0.1"),
    }


def test_two_runs_of_one_file_differ_in_nothing(ran, olga) -> None:  # PE-4
    a, b = ran(study()), ran(study())
    assert "Nothing: both were made of the same file. Their traces are the same, too." in _page(olga, a, b)


def test_a_topic_that_one_of_them_has_alone_is_said(ran, olga) -> None:  # PE-3
    a, b = ran(study()), ran(study(topics=["levy", "pool"]))
    assert f"Only study {b.pk} has <b>pool</b>." in _page(olga, a, b)
    c = ran(study(topics=[], personas=[{"id": "ada"}], stimuli=[{"text": "x"}]))
    assert "The two have no topic in common" in _page(olga, a, c)


def test_studies_of_different_lengths_have_gaps_and_no_invented_numbers(ran, olga) -> None:  # PE-3
    a, b = ran(crowd(3, 2)), ran(crowd(3, 4))
    rows = comparing.by_turn(comparing.side(a), comparing.side(b)).rows
    assert [row[0] for row in rows] == ["0", "1", "2", "3", "4"]
    assert [row[1] == "–" for row in rows] == [False, False, False, True, True]
    assert "–" not in [row[2] for row in rows]


@pytest.mark.parametrize("given", ["", "0", "x", "-1", "9" * 30, "9" * 19, "²", "1\0"])
def test_what_is_no_study_is_404(ran, olga, given: str) -> None:  # SF-4
    run = ran(study())
    assert _asked(olga, run.pk, given).status_code == 404
    assert _asked(olga, given, run.pk).status_code == 404


def test_nobody_compares_with_a_study_of_somebody_else(ran, olga) -> None:  # SF-1
    other = User.objects.create_user("sam")
    own, others = ran(study()), ran(study(seed=8), other)
    assert _asked(olga, own.pk, others.pk).status_code == 404
    assert _asked(olga, others.pk, own.pk).status_code == 404
    assert _asked(User.objects.create_user("op", is_staff=True), own.pk, others.pk).status_code == 200


def test_a_studys_page_offers_its_owners_other_studies(ran, olga) -> None:  # SF-1
    run = ran(study())
    client = Client()
    client.force_login(olga)
    assert "Compare with" not in client.get(f"/personas/{run.pk}").content.decode()
    mine = ran(study(seed=8, name="Second"))
    ran(study(name="Foreign"), User.objects.create_user("sam"))
    html = client.get(f"/personas/{run.pk}").content.decode()
    assert re.findall(r'<option value="(\d+)">', html) == [str(mine.pk)]
    assert f"{mine.pk} · Second" in html and "Foreign" not in html


def test_a_study_whose_file_is_unreadable_is_still_compared(ran, olga) -> None:  # SF-4
    a, b = ran(study()), ran(study(seed=8))
    StudyDefinition.objects.filter(pk=a.study_sha256).update(data=b"?")
    html = _page(olga, a, b)
    assert "What one of them was made of cannot be read." in html
    assert '<svg class="chart"' in html


def test_long_studies_take_as_many_queries_as_short_ones(ran, olga) -> None:  # PE-3
    asked = []
    for count, turns in ((2, 2), (80, 30)):
        a, b = ran(crowd(count, turns)), ran(crowd(count, turns, seed=8))
        with CaptureQueriesContext(connection) as queries:
            _asked(olga, a.pk, b.pk)
        asked.append(len(queries))
    assert asked[0] == asked[1]


def test_a_persona_that_both_have_is_drawn_over_the_medians(ran, olga) -> None:  # PE-3
    content = crowd(5, 8)
    content["personas"][4]["name"] = f"Pia {HOSTILE}"
    changed = {**content, "rate": 0.9, "personas": content["personas"][::-1]}  # its number is another
    a, b = ran(content), ran(changed)
    plain = _page(olga, a, b)
    assert '<option value="p4">' in plain and "behind" not in plain and "The last stance of" not in plain
    html = _page(olga, a, b, persona="p4")
    assert '<option value="p4" selected>' in html and HOSTILE not in html
    assert html.count('class="line line-strong behind"') == html.count('class="line line-chosen behind"') == 1
    assert all(f'href="/personas/{run.pk}/p/p4"' in html for run in (a, b))
    sides = [comparing.side(run, run.people.get(key="p4")) for run in (a, b)]
    ends = [
        TraceEvent.objects.filter(run=run, persona=number, kind="snapshot").latest("turn")
        for run, number in ((a, 4), (b, 0))
    ]
    stances = [stance_shown(read_payload(bytes(end.payload)).beliefs[0].stance) for end in ends]
    (row,) = comparing.own_finals(*sides)
    assert row[1:3] == stances
    assert f'<td class="number">{stances[0]}</td><td class="number">{stances[1]}</td>' in html
    table = comparing.by_turn(*sides, "Pia")
    assert table.columns[1:] == [f"levy,{whose} study {run.pk}" for whose in ("", " Pia,") for run in (a, b)]
    assert table.rows[-1][3:] == stances


def test_who_is_in_one_study_alone_is_said_and_who_is_in_neither_is_404(ran, olga) -> None:  # SF-4
    a, b = ran(study()), ran(crowd(3, 3))
    assert "They have no persona’s id in common" in _page(olga, a, b)
    assert f"Only study {a.pk} has Ada: there is nothing to compare it with." in _page(olga, a, b, persona="ada")
    assert f"Only study {b.pk} has p1: there is nothing to compare it with." in _page(olga, a, b, persona="p1")
    assert "The last stance of" not in _page(olga, a, b, persona="ada")
    for key in ("nobody", "a\0", "x" * 101):
        assert _asked(olga, a.pk, b.pk, persona=key).status_code == 404
    assert _asked(olga, a.pk, b.pk, persona="").status_code == 200


def test_a_persona_of_whom_nothing_is_recorded_is_not_drawn(ran, olga) -> None:  # SF-4
    a, b = ran(study()), ran(study(seed=8))
    TraceEvent.objects.filter(run=b, persona=0).delete()
    assert "No belief of Ada is recorded in both." in _page(olga, a, b, persona="ada")


def test_a_persona_takes_as_many_queries_in_a_large_study_as_in_a_small_one(ran, olga) -> None:  # PE-3
    asked = []
    for count, turns in ((2, 2), (80, 30)):
        a, b = ran(crowd(count, turns)), ran(crowd(count, turns, seed=8))
        with CaptureQueriesContext(connection) as queries:
            assert _asked(olga, a.pk, b.pk, persona="p1").status_code == 200
        asked.append(len(queries))
    assert asked[0] == asked[1]
