"""A hosted agent over a real socket: its opening, its turns, what of them is recorded and charged."""

import asyncio
import time
from contextlib import contextmanager

import pytest
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan

from agentlab.agents.models import AgentDeployment, HandResult
from agentlab.hosted import agent as agent_module
from agentlab.hosted import model_port
from agentlab.hosted.agent import ECHO_SECONDS, MARGIN_SECONDS
from agentlab.hosted.frames import Enter, PostBlind, Rejected, Sit
from agentlab.hosted.notes import memory_gap
from capture import spans as capture_spans
from capture.knowledge import read_knowledge
from tests.hosted.openai_server import completion, endpoint, says
from tests.hosted.scenes import game_state, hand_result, player_action, seat_result, your_turn
from tests.hosted.tables import (
    CALL,
    FOLD,
    TABLE,
    answers,
    charges,
    echo,
    one_turn,
    publish,
    recorded,
    seated,
    soon,
    until,
)

pytestmark = pytest.mark.django_db(transaction=True)


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


class Spans:
    """A tracer that keeps what every span was given."""

    def __init__(self):
        self.kept = []

    @contextmanager
    def start_as_current_span(self, name, attributes=None, **told):
        span = self.start_span(name)
        span.told = told
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
    unasked = {"record_exception": False, "set_status_on_exception": False}  # an exception's words may be content
    assert [span.told for span in spans.kept if span.name == "invoke_agent"] == [unasked] * 2


def test_what_a_hand_came_to_goes_to_the_ledger_once_for_whoever_was_dealt_in(capture_redis, tmp_path):
    # HA-10
    publish(model=answers(tmp_path / "a", CALL))
    away = [seat_result(1, "nit", -100), seat_result(2, "bluffy", 100)]

    async def run():
        async with seated() as play:
            await play.table.tell(hand_result(6), hand_result(7, seats=away))
            await until(lambda: len(play.agent.memory.hand_history) == 2)

    asyncio.run(run())
    assert list(HandResult.objects.values_list("agent_id", "table_id", "hand_number", "net")) == [
        ("rocky", TABLE, 6, -100)
    ]
