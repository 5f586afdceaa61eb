from agentlab.hosted.memory import HISTORY, NOTE_LENGTH, NOTES, Memory
from tests.hosted.scenes import game_state, hand_result, player_action, wire, your_turn


def test_the_last_state_overwrites_the_one_before():
    # HA-2
    memory = Memory()
    memory.hear(game_state(pot=150))
    memory.hear(game_state(pot=250))
    assert memory.state == wire(game_state(pot=250))


def test_actions_of_this_hand_are_appended_in_order():
    # HA-2
    memory = Memory()
    memory.hear(game_state())
    memory.hear(player_action(0, "rocky", "raise", 300))
    memory.hear(game_state(action_index=1))
    memory.hear(player_action(1, "nit", "fold"))
    assert [(heard["agentId"], heard["action"]) for heard in memory.action_log] == [("rocky", "raise"), ("nit", "fold")]


def test_a_new_hand_empties_the_log_and_nothing_else():
    # HA-2
    memory = Memory(notes=["nit folds"])
    memory.hear(game_state())
    memory.hear(player_action(0, "rocky", "fold"))
    memory.hear(hand_result(7))
    memory.hear(game_state(hand_number=8))
    assert memory.action_log == []
    assert [hand["handNumber"] for hand in memory.hand_history] == [7]
    assert memory.notes == ["nit folds"]


def test_an_action_of_another_hand_is_not_this_hands_action():
    # HA-2
    memory = Memory()
    memory.hear(player_action(0, "rocky", "fold"))
    memory.hear(game_state(hand_number=8))
    memory.hear(player_action(4, "nit", "call", 50, hand_number=7))
    assert memory.action_log == []


def test_the_history_keeps_the_latest_twenty_hands():
    # HA-2
    memory = Memory()
    for number in range(1, 31):
        memory.hear(hand_result(number))
    assert [hand["handNumber"] for hand in memory.hand_history] == list(range(31 - HISTORY, 31))


def test_frames_that_carry_nothing_to_remember_change_nothing():
    # HA-2
    memory = Memory()
    memory.hear(game_state())
    before = (dict(memory.state or {}), list(memory.action_log))
    memory.hear(your_turn())
    assert (memory.state, memory.action_log) == before


def test_what_is_remembered_is_the_frame_with_its_names_on_the_wire():
    # HA-2
    memory = Memory()
    memory.hear(game_state())
    memory.hear(player_action(0, "rocky", "raise", 300))
    assert memory.action_log[0] == {
        "type": "player_action",
        "handNumber": 7,
        "actionIndex": 0,
        "seat": 0,
        "agentId": "rocky",
        "street": "preflop",
        "action": "raise",
        "amount": 300,
        "allIn": False,
        "cause": "chosen",
    }


def test_notes_are_short_kept_once_and_the_newest_twenty():
    # HA-2
    memory = Memory()
    memory.note("a  long\nremark " + "x" * 500)
    memory.note("   ")
    for number in range(NOTES):
        memory.note(f"note {number}")
        memory.note(f"note {number}")
    assert memory.notes == [f"note {number}" for number in range(NOTES)]
    memory.note("y" * 500)
    assert memory.notes[-1] == "y" * NOTE_LENGTH
