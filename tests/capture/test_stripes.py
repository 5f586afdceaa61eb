"""The colours of stripes: an agent's own from hand to hand, and never two alike at a table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.hosted.house_roster import HOUSE
from capture.stripes import STRIPES, stripes

NAMES = [f"agent-{number}" for number in range(40)]
ids = st.sampled_from([*NAMES, "", "ход", "\ud83e", "a" * 200])


def test_the_agents_of_the_house_have_nine_colours_whoever_of_them_plays() -> None:  # VW-2
    house = {resident.slug: stripes([resident.slug])[resident.slug] for resident in HOUSE}
    assert len(set(house.values())) == STRIPES
    for one in house:
        assert stripes(house.keys() - {one}) == {agent: colour for agent, colour in house.items() if agent != one}


@given(st.lists(ids, unique=True, max_size=STRIPES))
def test_no_two_at_a_table_share_a_colour(company: list[str]) -> None:  # VW-2
    found = stripes(company)
    assert found.keys() == set(company)
    assert len(set(found.values())) == len(company)
    assert set(found.values()) <= set(range(STRIPES))


@given(st.lists(ids, unique=True, min_size=1, max_size=STRIPES))
def test_only_who_would_share_a_colour_gives_theirs_up(company: list[str]) -> None:  # VW-2
    found = stripes(company)
    assert stripes(company[::-1]) == found
    for agent, colour in found.items():
        own = stripes([agent])[agent]
        assert colour == own or min(one for one in company if stripes([one])[one] == own) < agent


@pytest.mark.parametrize("count", [0, STRIPES + 1, 40])
def test_more_agents_than_colours_have_one_each_all_the_same(count: int) -> None:
    found = stripes(NAMES[:count])
    assert len(found) == count
    assert set(found.values()) <= set(range(STRIPES))
