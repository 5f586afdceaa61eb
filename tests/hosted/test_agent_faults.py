"""Frames that are none, turns that are over, faults of its own, no Redis: each costs a decision at most."""

import asyncio

import pytest
import redis

from tests.hosted.openai_server import completion, endpoint, says
from tests.hosted.scenes import game_state, your_turn
from tests.hosted.tables import CALL, answers, charges, one_turn, publish, recorded, seated, soon, until

pytestmark = pytest.mark.django_db(transaction=True)


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


def test_a_table_that_closes_while_it_is_told_of_the_end_stops_nothing(capture_redis, tmp_path):
    # HA-1, SF-4
    publish(model=answers(tmp_path / "a", CALL))

    async def run():
        async with seated() as play:
            await one_turn(play)

            async def tells_and_is_cut_off(frame):
                play.agent._HostedAgent__socket = None

            play.agent.send_to_table = tells_and_is_cut_off
            await play.agent.stop()

    asyncio.run(run())
