"""Who is spoken of in a hand, and what they are called."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentlab.agents.models import Agent
from capture.company import company, names_of
from capture.frozen import freeze
from capture.reading import Hand, TurnView
from tests.capture import hands


def hand_that_knows(*knew: Any) -> Hand:
    known = [None if one is None else one if isinstance(one, bytes) else freeze(one) for one in knew]
    turns = [hands.turn("rocky", index, knowledge=one) for index, one in enumerate(known)]
    return Hand("T-4", 184, [TurnView("rocky", turn.key.action_index, turn) for turn in turns], True)


def test_the_company_is_who_has_a_turn_a_seat_or_a_part_in_what_was_heard() -> None:  # VW-2
    known = hands.arguments(["Ah", "Ks"], action_log=[hands.heard("callie", "fold")])
    known["hand_history"] = [{"handNumber": 183, "seats": [{"seat": 4, "agentId": "quill", "net": 3}]}]
    found = company(hand_that_knows(None, known))
    assert found.seated == {"rocky", "bluffy", "nit"}
    assert found.named == {"rocky", "bluffy", "nit", "callie", "quill"}


@pytest.mark.parametrize(
    "odd",
    [
        b"\xc1",
        {},
        {"state": None, "action_log": "x", "hand_history": 7},
        {"state": {"seats": {"agentId": "nit"}}, "action_log": [None, 1, {"agentId": 5}]},
        {"state": {"seats": [{"agentId": "a\0b"}, {"agentId": "\ud83e"}, {"agentId": "x" * 65}, {"agentId": "a b"}]}},
    ],
    ids=range(5),
)
def test_from_a_record_of_another_shape_nobody_is_taken(odd: Any) -> None:  # CAP-3
    assert company(hand_that_knows(odd)).named == {"rocky"}


@pytest.mark.django_db
def test_names_are_told_apart_and_a_deleted_agent_goes_by_its_id() -> None:  # VW-2
    owner = User.objects.create_user("ann")
    for agent, name in (("rocky", "Rocky"), ("rocky-2", "Rocky"), ("b", "Bluffy"), ("x", "nit")):
        Agent.objects.create(id=agent, name=name, owner=owner)
    with CaptureQueriesContext(connection) as queries:
        names = names_of(["rocky", "rocky-2", "b", "gone", "x", "nit"])
    assert names == {
        "rocky": "Rocky (rocky)",
        "rocky-2": "Rocky (rocky-2)",
        "b": "Bluffy",
        "gone": "gone",
        "x": "nit (x)",  # somebody else's id is no name of its own
        "nit": "nit",
    }
    assert len(queries) == 1
