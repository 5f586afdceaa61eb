import asyncio
import time
from contextlib import contextmanager

import pytest
import redis
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan

from agentlab.agents.models import Agent, AgentDeployment, InferenceCharge, Whisper
from agentlab.agents.services import whisper, withdraw
from agentlab.hosted import agent as agent_module
from agentlab.hosted import model_port
from agentlab.hosted.agent import ECHO_SECONDS, MARGIN_SECONDS
from agentlab.hosted.deployments import seat
from agentlab.hosted.frames import Enter, PostBlind, Rejected, Sit
from agentlab.hosted.notes import memory_gap
from capture import spans as capture_spans
from capture.buffer import TurnBuffer
from capture.knowledge import read_knowledge
from tests.hosted.openai_server import completion, endpoint, says
from tests.hosted.scenes import game_state, hand_result, player_action, your_turn
from tests.hosted.tables import TABLE, answers, echo, publish, seated, soon, until

pytestmark = pytest.mark.django_db(transaction=True)

CALL = 'I call.\n{"action": "call"}'
FOLD = '{"action": "fold"}'


def recorded(client, hand=7):
    return TurnBuffer(client).hand_turns(TABLE, hand, agent_id="rocky")


def charges():
    return list(InferenceCharge.objects.order_by("hand_number", "action_index"))


async def one_turn(play, *, answer=True, **state):
    """Asks once and, like a table, echoes what is said; the action."""
    await play.table.tell(game_state(**state), your_turn(turn_ends_at=soon()))
    said = await play.table.heard()
    if answer:
        await play.table.tell(echo(said))
        await until(lambda: heard_last(play) == (said.hand_number, said.action_index))
    return said


def heard_last(play):
    """Hand and index of the last action that the agent remembers."""
    log = play.agent.memory.action_log
    return (log[-1]["handNumber"], log[-1]["actionIndex"]) if log else None


def test_it_enters_sits_pays_blinds_and_answers_a_turn_by_hand_and_action_index(capture_redis, tmp_path):
    # HA-1
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            assert [type(frame) for frame in play.opening] == [Enter, Sit, PostBlind]
            return await one_turn(play, action_index=4)

    said = asyncio.run(run())
    assert (said.action, said.amount, said.hand_number, said.action_index) == ("call", None, 7, 4)


def test_a_turn_is_recorded_with_its_four_things(capture_redis, tmp_path):
    # CAP-1
    version = publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            await one_turn(play)

    asyncio.run(run())
    (turn,) = recorded(capture_redis)
    assert read_knowledge(turn.knowledge)["state"]["holeCards"] == ["As", "Kh"]
    assert turn.prompt.text.startswith(
        "Play poker.\n\n[Strategy]\nPlay well.\n\n[Skill: Odds]\nCount.\n[Table]\nHand 7"
    )
    assert turn.response == CALL
    assert [(m["type"], m["action"], m["handNumber"], m["actionIndex"]) for m in turn.decision] == [
        ("action", "call", 7, 0)
    ]
    assert (turn.action, turn.amount, turn.asked_action, turn.change) == ("call", 100, "call", None)
    assert (turn.model, turn.routing, turn.agent_version_id) == ("answers", "answers", version)
    assert turn.choice_source == "content"


def test_what_was_asked_for_and_what_was_sent_are_both_recorded_where_they_differ(capture_redis, tmp_path):
    # HA-6
    publish(model=answers(tmp_path / "a", '{"action": "raise", "amount": 99999}'))

    async def run():
        async with seated() as play:
            said = await one_turn(play)
            assert said.amount == 10_000

    asyncio.run(run())
    (turn,) = recorded(capture_redis)
    assert (turn.asked_action, turn.asked_amount, turn.amount, turn.change) == ("raise", 99999, 10_000, "clamp")
    assert turn.decision[0]["amount"] == 10_000


def test_what_became_of_each_choice_is_in_the_ledger_as_in_the_record(capture_redis, tmp_path):
    # HA-6, HA-10
    said = ('{"action": "raise", "amount": 5}', '{"action": "bet", "amount": 300}', '{"action": "check"}', CALL, "hm")
    publish(model=answers(tmp_path / "a", *said))

    async def run():
        async with seated() as play:
            for index in range(len(said)):
                await one_turn(play, action_index=index)
            assert play.agent.tally.clamped == 1

    asyncio.run(run())
    words = ["clamp", "rename", "verb", ""]
    assert [turn.change or "" for turn in recorded(capture_redis)] == words
    assert [row.change for row in charges()] == [*words, ""]  # the last was a fallback


def test_the_echoed_action_is_never_in_what_the_agent_knew(capture_redis, tmp_path):
    # CAP-4
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated(min_turn_ms=50) as play:
            await one_turn(play)
            await one_turn(play, action_index=2)
            assert [heard["actionIndex"] for heard in play.agent.memory.action_log] == [0, 2]

    asyncio.run(run())
    first, second = recorded(capture_redis)
    assert read_knowledge(first.knowledge)["action_log"] == []
    assert [heard["actionIndex"] for heard in read_knowledge(second.knowledge)["action_log"]] == [0]


def test_what_comes_in_between_thinking_and_acting_is_not_in_what_the_agent_knew(capture_redis, settings):
    # CAP-4
    publish()

    async def run():
        asked, answered = asyncio.Event(), asyncio.Event()

        async def waits(write):
            asked.set()
            await answered.wait()
            await says(completion(CALL))(write)

        async with endpoint(waits) as server:
            settings.OPENAI_BASE_URL = server.url
            async with seated(model="openai:tiny") as play:
                await play.table.tell(game_state(), your_turn(turn_ends_at=soon()))
                await asked.wait()
                await play.table.tell(player_action(0, "nit", "raise", 999), hand_result(6), game_state(pot=999))
                await until(lambda: play.agent.memory.state["pot"] == 999)
                answered.set()
                await play.table.tell(echo(await play.table.heard()))

    asyncio.run(run())
    (turn,) = recorded(capture_redis)
    known = read_knowledge(turn.knowledge)
    assert (known["action_log"], known["hand_history"], known["state"]["pot"]) == ([], [], 150)
    assert "999" not in turn.prompt.remainder


def test_enter_is_in_no_decision_and_its_token_is_nowhere_in_redis(capture_redis, tmp_path):
    # CAP-5, CAP-6
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            await one_turn(play)
            return play.opening[0].agent_token

    token = asyncio.run(run())
    (turn,) = recorded(capture_redis)
    assert {message["type"] for message in turn.decision} == {"action"}
    assert len(token) > 100
    stored = b"".join([*capture_redis.scan_iter(), *everything(capture_redis)])
    assert b"call" in stored
    for part in token.split("."):
        assert part.encode() not in stored


def everything(client):
    """Every value in the store, whatever its type."""
    readers = {
        b"string": client.get,
        b"set": lambda key: b"".join(client.smembers(key)),
        b"zset": lambda key: b"".join(client.zrange(key, 0, -1)),
        b"list": lambda key: b"".join(client.lrange(key, 0, -1)),
        b"hash": lambda key: b"".join(part for pair in client.hgetall(key).items() for part in pair),
    }
    return [readers[client.type(key)](key) for key in client.scan_iter()]


def test_a_failed_turns_fold_is_not_on_the_next_turn(capture_redis, tmp_path):
    # CAP-2, CAP-5
    publish(model=answers(tmp_path / "a", "I cannot decide.", CALL))

    async def run():
        async with seated() as play:
            first = await one_turn(play)
            second = await one_turn(play, hand_number=8)
            assert (first.action, second.action) == ("fold", "call")

    asyncio.run(run())
    assert recorded(capture_redis, 7) == []
    (turn,) = recorded(capture_redis, 8)
    assert [message["action"] for message in turn.decision] == ["call"]


def test_a_refusal_stands_in_the_record(capture_redis, tmp_path):
    # CAP-5
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            said = await one_turn(play, answer=False)
            await play.table.tell(
                Rejected(hand_number=7, action_index=5, reason="late: not this one"),
                Rejected(
                    hand_number=said.hand_number, action_index=said.action_index, reason="late: that turn is over"
                ),
            )
            await one_turn(play, hand_number=8)

    asyncio.run(run())
    (turn,) = recorded(capture_redis)
    assert turn.decision[0]["action"] == "call"
    assert turn.decision[1:] == [{"refused": "late: that turn is over"}]


def test_a_move_that_the_table_made_first_stands_as_a_refusal_of_what_was_sent(capture_redis, tmp_path):
    # CAP-5: an agent that was held up hears of its timeout and of its next turn before the refusal
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            said = await one_turn(play, answer=False)
            await play.table.tell(
                player_action(said.action_index, "rocky", "fold", cause="timeout", hand_number=said.hand_number)
            )
            await one_turn(play, hand_number=8)

    asyncio.run(run())
    (turn,) = recorded(capture_redis)
    assert [message.get("action") for message in turn.decision] == ["call", None]
    assert turn.decision[1:] == [{"refused": "the table had acted already: timeout"}]


def test_a_table_that_does_not_answer_delays_the_record_by_a_second_and_no_turn(capture_redis, tmp_path):
    # CAP-5, CAP-10
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            await one_turn(play, answer=False)
            written = lambda: play.crew._recorder.stats.recorded  # noqa: E731
            assert written() == 0
            began = time.monotonic()
            while not written() and time.monotonic() - began < 5:
                await asyncio.sleep(0.02)
            assert time.monotonic() - began > ECHO_SECONDS / 2

    asyncio.run(run())
    (turn,) = recorded(capture_redis)
    assert [message["action"] for message in turn.decision] == ["call"]


def test_the_next_turn_does_not_wait_for_the_echo_of_the_last(capture_redis, tmp_path):
    # CAP-5
    publish(model=answers(tmp_path / "a", CALL, FOLD))

    async def run():
        async with seated() as play:
            await one_turn(play, answer=False)
            await one_turn(play, action_index=3, answer=False)

    asyncio.run(run())
    assert [[m["action"] for m in turn.decision] for turn in recorded(capture_redis)] == [["call"], ["fold"]]


def test_a_lost_connection_after_sending_records_what_was_sent(capture_redis, tmp_path):
    # CAP-5, SF-5
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            await one_turn(play, answer=False)
            await play.table.socket.close()
            await play.table.seated()

    asyncio.run(run())
    assert [turn.action for turn in recorded(capture_redis)] == ["call"]


def test_it_reconnects_with_an_empty_head_and_plays_on(capture_redis, tmp_path):
    # HA-2, VW-9
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            await play.table.tell(hand_result(6), game_state(), player_action(0, "nit", "raise", 300))
            await one_turn(play, action_index=1)
            await play.table.socket.close()
            opening = await play.table.seated()
            assert opening[0].agent_token != play.opening[0].agent_token
            await one_turn(play, action_index=2, pot=900)

    asyncio.run(run())
    before, after = (read_knowledge(turn.knowledge) for turn in recorded(capture_redis))
    assert (len(before["action_log"]), len(before["hand_history"])) == (1, 1)
    assert (after["action_log"], after["hand_history"]) == ([], [])
    assert after["state"]["pot"] == 900
    noted = [row.note for row in charges()]
    assert noted == ["", "reconnected"]
    words = {None: "", "RECONNECTED?": "reconnected"}
    assert [words[note and note.word] for note in map(memory_gap, recorded(capture_redis))] == noted


def test_what_a_memory_lacked_is_noted_for_a_fallback_too_and_not_where_it_never_began_to_think(tmp_path):
    # VW-9, HA-10
    publish(model=answers(tmp_path / "a", "…"))

    class Broken:
        async def deployment(self, deployment_id):
            raise RuntimeError

    async def run():
        async with seated() as play:
            await play.table.tell(hand_result(6), game_state(), player_action(0, "nit", "raise", 300))
            await one_turn(play, action_index=2)
            play.agent._desk = Broken()
            await one_turn(play, action_index=3)

    asyncio.run(run())
    assert [(row.is_fallback, row.note) for row in charges()] == [(True, "log_gap"), (True, None)]


def test_every_inference_turn_makes_one_ledger_row_fallbacks_included(capture_redis, tmp_path):
    # HA-10
    version = publish(model=answers(tmp_path / "a", CALL, "…", ""))

    async def run():
        async with seated() as play:
            for index in (0, 3, 6):
                await one_turn(play, action_index=index)
        return play.report

    report = asyncio.run(run())
    decided, unreadable, empty = charges()
    assert (decided.action, decided.amount, decided.is_fallback, decided.capture_outcome) == (
        "call",
        100,
        False,
        "recorded",
    )
    assert (decided.agent_version_id, decided.model, decided.routing) == (version, "answers", "answers")
    assert decided.deployment_id == AgentDeployment.objects.get().pk
    assert decided.duration_ms is not None
    assert (unreadable.fallback_reason, unreadable.action) == ("no choice could be read in the answer", "fold")
    assert empty.fallback_reason == "the answer was empty"
    assert {(row.is_fallback, row.capture_outcome) for row in (unreadable, empty)} == {(True, "none")}
    assert (report.turns, report.fallbacks, report.captured, report.dropped, report.failed) == (3, 2, 1, 0, 0)


def test_a_silent_endpoint_costs_the_safe_action_in_time(capture_redis, settings):
    # HA-5, HA-6
    publish()

    async def silent(write):
        await asyncio.sleep(60)

    async def run():
        async with endpoint(silent) as server:
            settings.OPENAI_BASE_URL = server.url
            async with seated(model="openai:tiny", min_turn_ms=200) as play:
                ends_at = soon(1.2)
                await play.table.tell(game_state(), your_turn(turn_ends_at=ends_at))
                said = await play.table.heard()
                assert time.time() * 1000 < ends_at
                return said

    assert asyncio.run(run()).action == "fold"
    (row,) = charges()
    assert row.fallback_reason == "model: timed out"
    assert row.duration_ms < 1200 - 200 - MARGIN_SECONDS * 1000 + 50
    assert recorded(capture_redis) == []


def test_a_turn_with_no_time_left_asks_no_model_and_is_safe(capture_redis, tmp_path):
    # HA-5
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            await play.table.tell(
                game_state(to_call=0), your_turn(legal_actions=["check"], chip_range=None, turn_ends_at=soon(-5))
            )
            return await play.table.heard()

    assert asyncio.run(run()).action == "check"
    assert [row.fallback_reason for row in charges()] == ["no time left to ask the model"]


def test_min_turn_sits_between_context_and_action_but_never_past_the_turns_end(capture_redis, tmp_path):
    # HA-8
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated(min_turn_ms=400) as play:
            took = []
            for ends in (20, 0.75):
                began = time.monotonic()
                await play.table.tell(game_state(), your_turn(turn_ends_at=soon(ends)))
                await play.table.tell(echo(await play.table.heard()))
                took.append(time.monotonic() - began)
            return took

    took = asyncio.run(run())
    assert 0.4 <= took[0] < 2
    assert took[1] < 0.75


def test_min_turn_is_three_seconds_at_most(capture_redis):
    # HA-8
    publish()

    async def run():
        async with seated(min_turn_ms=60_000) as play:
            return play.agent._min_turn

    assert asyncio.run(run()) == 3.0


def test_a_whisper_reaches_the_agent_at_its_next_turn_and_stands_in_what_it_knew(capture_redis, tmp_path):
    # HA-12
    publish(model=answers(tmp_path / "a", CALL))
    agent = Agent.objects.select_related("owner").get()

    async def run():
        async with seated() as play:
            await one_turn(play)
            await asyncio.to_thread(whisper, agent, author=agent.owner, text="Fold to raises.")
            await one_turn(play, action_index=3)

    asyncio.run(run())
    before, after = recorded(capture_redis)
    assert read_knowledge(before.knowledge)["whispers"] == []
    (heard,) = read_knowledge(after.knowledge)["whispers"]
    assert (heard["author"], heard["text"]) == ("ada", "Fold to raises.")
    assert "Fold to raises." in after.prompt.remainder
    assert "Fold to raises." not in after.prompt.envelope


def whispers_known(turn):
    return [one["text"] for one in read_knowledge(turn.knowledge)["whispers"]]


def heard_at(text):
    """Hand and action index of the turn that is noted to have heard it."""
    said = Whisper.objects.get(text=text)
    return (said.heard_hand_number, said.heard_action_index)


def test_the_turn_that_is_noted_to_have_heard_a_whisper_is_the_first_that_knew_it(capture_redis, tmp_path):
    # HA-12
    publish(model=answers(tmp_path / "a", CALL))
    agent = Agent.objects.select_related("owner").get()

    async def run():
        async with seated() as play:
            await one_turn(play)
            await asyncio.to_thread(whisper, agent, author=agent.owner, text="one")
            for index in (3, 6):
                await one_turn(play, action_index=index)
        async with seated() as play:  # the agent comes back with an empty head
            await asyncio.to_thread(whisper, agent, author=agent.owner, text="two")
            await one_turn(play, action_index=9)

    asyncio.run(run())
    assert [whispers_known(turn) for turn in recorded(capture_redis)] == [[], ["one"], ["one"], ["one", "two"]]
    assert (heard_at("one"), heard_at("two")) == ((7, 3), (7, 9))


def test_a_whisper_that_is_withdrawn_in_a_turn_is_known_to_that_turn_and_to_none_after(capture_redis, tmp_path):
    # HA-12
    publish(model=answers(tmp_path / "a", CALL))
    agent = Agent.objects.select_related("owner").get()
    heard, unheard = (whisper(agent, author=agent.owner, text=text) for text in ("heard", "unheard"))
    withdraw(unheard, actor=agent.owner)

    async def run():
        async with seated(min_turn_ms=600) as play:
            await play.table.tell(game_state(action_index=1), your_turn(turn_ends_at=soon()))
            await until(lambda: play.agent.memory.whispers)
            await asyncio.to_thread(withdraw, heard, actor=agent.owner)
            await play.table.tell(echo(await play.table.heard()))
            await one_turn(play, action_index=4)

    asyncio.run(run())
    assert [whispers_known(turn) for turn in recorded(capture_redis)] == [["heard"], []]
    assert (heard_at("heard"), heard_at("unheard")) == ((7, 1), (None, None))


def test_a_turn_without_a_decision_has_heard_nothing(capture_redis, tmp_path):
    # HA-12
    publish(model=answers(tmp_path / "a", "no choice is in this", CALL))
    agent = Agent.objects.select_related("owner").get()
    whisper(agent, author=agent.owner, text="one")

    async def run():
        async with seated() as play:
            for index in (0, 3):
                await one_turn(play, action_index=index)

    asyncio.run(run())
    assert [charge.is_fallback for charge in charges()] == [True, False]
    assert heard_at("one") == (7, 3)


def test_its_own_note_is_known_at_the_next_turn(capture_redis, tmp_path):
    # HA-2
    publish(model=answers(tmp_path / "a", '{"action": "call", "note": "nit folds to raises"}'))

    async def run():
        async with seated() as play:
            await one_turn(play)
            await one_turn(play, action_index=3)

    asyncio.run(run())
    assert [read_knowledge(turn.knowledge)["notes"] for turn in recorded(capture_redis)] == [
        [],
        ["nit folds to raises"],
    ]


def test_the_version_that_the_table_seats_is_the_one_that_plays(capture_redis, tmp_path):
    # HA-11
    first = publish(model=answers(tmp_path / "a", CALL))
    deployment = seat("rocky", TABLE)

    async def run():
        async with seated() as play:
            await one_turn(play, deployment_id=deployment.pk)
            second = await asyncio.to_thread(publish, strategy="Play otherwise.", model=answers(tmp_path / "b", FOLD))
            renewed = await asyncio.to_thread(seat, "rocky", TABLE)
            await one_turn(play, deployment_id=deployment.pk, action_index=3)
            await one_turn(play, deployment_id=renewed.pk, hand_number=8)
            return second

    second = asyncio.run(run())
    assert [turn.agent_version_id for turn in recorded(capture_redis)] == [first, first]
    (turn,) = recorded(capture_redis, 8)
    assert turn.agent_version_id == second
    assert "Play otherwise." in turn.prompt.envelope
    assert turn.action == "fold"


def test_a_turn_before_any_state_and_frames_that_are_none_are_passed_over(capture_redis, tmp_path):
    # HA-1
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            await play.table.tell(
                your_turn(turn_ends_at=soon()), "no json", '{"type": "game_state"}', '{"type": "odd"}', "[]"
            )
            await one_turn(play)
            return play.crew.tally.bad_frames

    assert asyncio.run(run()) == 5
    assert len(charges()) == 1


def test_a_turn_that_the_table_has_given_up_is_a_fallback_that_sent_nothing(capture_redis, settings):
    # HA-10, CAP-5
    publish()

    async def run():
        asked = []

        async def answers_the_second(write):
            asked.append(write)
            if len(asked) == 1:
                await asyncio.sleep(60)
            await says(completion(CALL))(write)

        async with endpoint(answers_the_second) as server:
            settings.OPENAI_BASE_URL = server.url
            async with seated(model="openai:tiny") as play:
                await play.table.tell(game_state(), your_turn(turn_ends_at=soon()))
                await until(lambda: asked)
                return await one_turn(play, hand_number=8)

    said = asyncio.run(run())
    assert (said.hand_number, said.action) == (8, "call")
    given_up, played = charges()
    assert (given_up.hand_number, given_up.action, given_up.is_fallback) == (7, "", True)
    assert given_up.fallback_reason == "the turn ended before the decision"
    assert (played.hand_number, played.is_fallback) == (8, False)
    assert recorded(capture_redis) == []


def test_a_fault_of_its_own_costs_one_decision_and_not_the_seat(capture_redis, tmp_path, caplog):
    # HA-6
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            return await one_turn(play), await one_turn(play, action_index=3)

    with pytest.MonkeyPatch.context() as patch:
        from agentlab.hosted import deciding

        real, calls = deciding.build_turn_context, []

        def once_broken(**known):
            calls.append(known)
            if len(calls) == 1:
                raise KeyError("zanz" + "ibar")
            return real(**known)

        patch.setattr(deciding, "build_turn_context", once_broken)
        first, second = asyncio.run(run())
    assert (first.action, second.action) == ("fold", "call")
    assert [row.fallback_reason for row in charges()] == ["agent error: KeyError", ""]
    assert "KeyError" in caplog.text
    assert "once_broken" in caplog.text  # where it was, and none of the words that it came with
    assert "zanzibar" not in caplog.text


def test_with_the_capture_redis_away_every_turn_is_played_and_its_loss_is_in_the_ledger(tmp_path):
    # CAP-10
    publish(model=answers(tmp_path / "a", CALL))
    from agentlab.hosted import crew

    nowhere = redis.Redis(unix_socket_path=str(tmp_path / "no.sock"), socket_connect_timeout=1)

    async def run():
        async with seated() as play:
            said = [await one_turn(play, action_index=index) for index in range(5)]
        assert [action.action for action in said] == ["call"] * 5
        return play.report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crew, "get_redis_connection", lambda _: nowhere)
        report = asyncio.run(run())
    assert (report.captured, report.dropped + report.failed) == (0, 5)
    assert all(row.capture_outcome in {"dropped", "failed"} and row.capture_reason for row in charges())


class Spans:
    """A tracer that keeps what every span was given."""

    def __init__(self):
        self.kept = []

    @contextmanager
    def start_as_current_span(self, name, attributes=None):
        span = self.start_span(name)
        span.set_attributes(attributes or {})
        yield span

    def start_span(self, name, context=None):
        span = KeptSpan(name)
        self.kept.append(span)
        return span


class KeptSpan(NonRecordingSpan):
    def __init__(self, name):
        super().__init__(INVALID_SPAN_CONTEXT)
        self.name, self.attributes = name, {}

    def is_recording(self):
        return True

    def set_attribute(self, key, value):
        self.attributes[key] = value

    def set_attributes(self, attributes):
        self.attributes.update(attributes)


def test_the_spans_of_turns_carry_ids_and_counts_and_no_content(capture_redis, tmp_path, monkeypatch):
    # CAP-13
    secret = "zanzibar"
    publish(
        strategy=secret, model=answers(tmp_path / "a", f'{secret} {{"action": "call", "note": "{secret}"}}', secret)
    )
    spans = Spans()
    for module in (agent_module, model_port):
        monkeypatch.setattr(module, "tracer", spans)
    monkeypatch.setattr(capture_spans, "_tracer", spans)

    async def run():
        async with seated() as play:
            await one_turn(play)
            await one_turn(play, action_index=3)

    asyncio.run(run())
    names = [span.name for span in spans.kept]
    assert sorted(names) == sorted(["invoke_agent", "chat answers:a"] * 2 + ["capture turn"])
    told = " ".join(f"{span.name} {span.attributes}" for span in spans.kept)
    assert "'agentlab.hand_number': 7" in told
    assert "'gen_ai.response.model': 'answers'" in told
    for content in (secret, "As", "Kh", "call", "[Table]"):
        assert content not in told
