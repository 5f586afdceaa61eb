import dataclasses

import pytest
from django.contrib.auth.models import User

from agentlab.agents.models import Agent
from agentlab.hosted.context import RENDERER, build_turn_context
from agentlab.hosted.memory import gap
from agentlab.hosted.notes import memory_gap, renders_otherwise
from capture.knowledge import read_knowledge
from capture.prompt import Prompt
from capture.turns import Turn, TurnKey
from tests.capture.making import charge, charge_all, write
from tests.hosted.scenes import game_state, hand_result, player_action, wire, your_turn

ACTIONS = [
    player_action(0, "rocky", "raise", 300),
    player_action(1, "nit", "call", 250),
    player_action(2, "bluffy", "fold"),
]


def turn(heard=(), hand_history=(), notes=(), **state):
    built = build_turn_context(
        state=wire(game_state(**state)),
        turn=wire(your_turn()),
        action_log=[wire(ACTIONS[index]) for index in heard],
        hand_history=[wire(hand) for hand in hand_history],
        notes=list(notes),
    )
    return Turn(
        TurnKey("rocky", "t-1", 7, state.get("action_index", 0)),
        Prompt("envelope", built.value),
        "response",
        knowledge=built.knowledge,
        renderer=RENDERER,
    )


def test_an_empty_log_beside_a_pot_that_others_built_is_noted():
    # VW-9
    note = memory_gap(turn(action_index=3, pot=10_700))
    assert note.text.startswith(
        "10,700 chips are in the pot, 10,550 of them beyond blinds and antes, and its log of this hand is empty"
    )
    assert "seems to have reconnected" in note.text
    assert note.word == "RECONNECTED?"


def test_a_log_that_lacks_its_beginning_is_noted_with_what_it_lacks():
    # VW-9
    note = memory_gap(turn(heard=[2], action_index=3))
    assert note.text.startswith("It had heard 1 of the 3 actions before this turn: it seems to have reconnected")


LOST = "if it had any, they went with the connection."


def test_recent_hands_and_notes_that_are_empty_as_well_are_said_to_be_likely_lost():
    # VW-9
    assert memory_gap(turn(action_index=3)).text.endswith(f" Its recent hands and its notes are empty too: {LOST}")
    assert memory_gap(turn(heard=[2], notes=["Nit folds."], action_index=3)).text.endswith(
        f" Its recent hands are empty too: {LOST}"
    )


def test_a_memory_that_is_older_than_the_hand_is_not_said_to_have_come_in_the_middle():
    # VW-9
    for heard in ([], [2]):
        note = memory_gap(turn(heard=heard, hand_history=[hand_result(6)], action_index=3))
        assert note.word == "LOG GAP"
        assert "reconnected" not in note.text
        assert LOST not in note.text
        assert note.text.endswith("It still knows how an earlier hand ended, so it was connected all the while.")


def test_a_whole_log_and_the_first_action_of_a_hand_get_no_note():
    # VW-9
    assert memory_gap(turn(heard=[0, 1, 2], action_index=3, pot=700)) is None
    assert memory_gap(turn(action_index=0)) is None


def test_an_empty_log_in_a_pot_of_blinds_alone_claims_no_chips_beyond_them():
    # VW-9
    assert "beyond" not in memory_gap(turn(action_index=1)).text


def test_a_prompt_that_its_memory_gives_again_gets_no_note():
    # VW-9
    assert renders_otherwise(turn(heard=[0], action_index=1)) is None


def test_a_prompt_that_its_memory_does_not_give_is_noted():
    # VW-9
    recorded = turn(heard=[0], action_index=1)
    told = dataclasses.replace(recorded, prompt=Prompt("envelope", recorded.prompt.remainder.replace("300", "400")))
    note = renders_otherwise(told)
    assert "does not give the recorded prompt" in note.text
    assert note.word == "PROMPT DIFFERS"


def test_another_renderer_or_none_or_no_knowledge_gets_no_note():
    # VW-9
    recorded = turn(action_index=3, pot=700)
    other = dataclasses.replace(recorded, renderer="turn-context 0123", prompt=Prompt("envelope", "other"))
    assert renders_otherwise(other) is None
    assert memory_gap(other) is not None  # the shape is ours, whatever it was rendered with
    for foreign in ({"renderer": None}, {"renderer": "somebody else's 1"}, {"knowledge": None}):
        assert memory_gap(dataclasses.replace(recorded, **foreign)) is None
        assert renders_otherwise(dataclasses.replace(recorded, **foreign)) is None


def test_both_are_asked_about_every_turn_that_is_shown():
    # VW-9
    from capture import notes

    assert {memory_gap, renders_otherwise} <= set(notes._makers)


@pytest.fixture
def operator(client):
    client.force_login(User.objects.create_user("operator", is_staff=True))
    return client


@pytest.mark.django_db
@pytest.mark.parametrize(("history", "word"), [([], "RECONNECTED?"), ([hand_result(6)], "LOG GAP")])
def test_the_page_and_the_list_say_the_same_with_the_record_and_without(operator, capture_redis, history, word):
    # VW-9, VW-1
    shown = turn(heard=[2], hand_history=history, action_index=3)
    known = read_knowledge(shown.knowledge)
    charge_all(charge("rocky", 3, table="t-1", note=gap(known["state"], known["action_log"], known["hand_history"])))
    write(shown)
    for _ in ("recorded", "gone"):
        page = operator.get("/agent-capture", {"table": "t-1", "hand": "7"}).content.decode()
        assert page.count(f'<span class="badge badge-note">{word}</span>') == 1
        listed = operator.get("/agent-capture").content.decode()
        assert ("1 RECONNECTED?" in listed) == (word == "RECONNECTED?")
        narrowed = operator.get("/agent-capture?only=reconnected").content.decode()
        assert (">t-1:7<" in narrowed) == (word == "RECONNECTED?")
        capture_redis.flushdb()


@pytest.mark.django_db
def test_an_owners_list_marks_it_and_can_be_narrowed_to_it(client, capture_redis):
    # VW-9, VW-7
    client.force_login(owner := User.objects.create_user("ann"))
    Agent.objects.create(id="rocky", name="Rocky", owner=owner)
    charge_all(charge("rocky", 3, hand=7, note="reconnected"), charge("rocky", 3, hand=8, note=""))
    assert client.get("/agents/rocky").content.decode().count("1 RECONNECTED?") == 1
    narrowed = client.get("/agents/rocky?only=reconnected").content.decode()
    assert (">T-1:7<" in narrowed, ">T-1:8<" in narrowed) == (True, False)
