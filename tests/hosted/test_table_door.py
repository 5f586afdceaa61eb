"""The door of a table: frames that nobody should send, and who may come in."""

import asyncio
import contextlib
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from agentlab.hosted import connections, door
from agentlab.hosted.frames import (
    Action,
    Enter,
    GameState,
    HandResult,
    PlayerAction,
    PostBlind,
    Rejected,
    Sit,
    Stand,
)
from agentlab.hosted.table_config import now_ms
from tests.hosted.sockets import PATIENCE, Room, room, run, whose_turn

SHORT, LONG = 150, 60_000
"""Milliseconds for a turn: one that is let run out, and one that no test waits for."""


# Frames that nobody should send -------------------------------------------------------------------------------
@run
async def test_frames_out_of_turn_are_refused_and_harm_nobody() -> None:  # HA-9
    async with room(3, hands=1) as (here, players):
        player, _ = await whose_turn(players)
        other = next(other for other in players if other is not player)
        await other.sees(lambda state: state.to_act is not None)
        for reason, named in {
            "out_of_turn": {},
            "other_hand": {"hand_number": 2},
            "late": {"hand_number": 0},
        }.items():
            await other.act("fold", **named)
            refused = await other.rejected()
            assert refused.reason.partition(":")[0] == reason
            assert refused.hand_number == named.get("hand_number", 1)
        await player.act("call", action_index=5)
        assert (await player.rejected()).reason.startswith("out_of_turn:")
        await player.act("fold")
        assert (await other.next(PlayerAction)).agent_id == player.agent_id
    assert here.table.report.refused == {"out_of_turn": 2, "other_hand": 1, "late": 1}


@run
async def test_an_illegal_answer_is_refused_and_the_turn_stays_open() -> None:  # HA-9
    async with room(2, hands=1) as (here, players):
        player, _ = await whose_turn(players)
        for move, amount in (("check", None), ("raise", 101), ("raise", 10**9), ("raise", None), ("call", 50)):
            await player.act(move, amount)  # type: ignore[arg-type]
            refused = await player.rejected()
            assert refused.reason.startswith("illegal:")
            assert (refused.hand_number, refused.action_index) == (1, 0)
        await player.act("call")
        assert (await player.next(PlayerAction)).cause == "chosen"
    assert here.table.report.refused == {"illegal": 5}


@run
async def test_the_same_answer_twice_counts_once() -> None:  # HA-9
    async with room(2, hands=1) as (here, players):
        player, _ = await whose_turn(players)
        await player.act("call")
        await player.act("call")
        assert (await player.rejected()).reason.startswith("doubled:")
        other, _ = await whose_turn([other for other in players if other is not player])
        assert other.state.pot == 200
    assert here.table.report.refused == {"doubled": 1}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("not json", "malformed"),
        (b"\xff\x00", "malformed"),
        ("[" * 1000, "malformed"),
        ('{"type":"action","handNumber":1,"actionIndex":0,"action":"raise","amount":NaN}', "malformed"),
        ('{"type":"action","handNumber":1,"actionIndex":0,"action":"raise","amount":200.0}', "malformed"),
        ('{"type":"your_turn","legalActions":[],"chipRange":null,"turnEndsAt":0}', "malformed"),
        ('{"type":"sit"}' + " " * 5000, "too_large"),
    ],
)
@run
async def test_what_is_no_frame_is_refused_and_the_sender_plays_on(message: str | bytes, code: str) -> None:  # HA-9
    async with room(2, hands=1) as (here, players):
        player, _ = await whose_turn(players)
        await player.say(message)
        refused = await player.rejected()
        assert refused.reason.partition(":")[0] == code
        assert refused.hand_number is None
        await player.act("fold")
        assert (await player.next(PlayerAction)).cause == "chosen"
    assert here.table.report.refused == {code: 1}


@run
async def test_a_huge_message_ends_its_senders_connection_alone() -> None:  # HA-9
    async with room(3, hands=1) as (_, players):
        player, _ = await whose_turn(players)
        other = next(other for other in players if other is not player)
        await other.say("x" * 1_000_000)
        assert await other.closed() == 1009
        await player.act("fold")
        assert (await player.next(PlayerAction)).cause == "chosen"


@pytest.mark.parametrize(
    "message", ['{"type":"sit"}', "nonsense", '{"type":"action","handNumber":9,"actionIndex":9,"action":"fold"}']
)
@run
async def test_a_flood_ends_its_senders_connection_and_the_game_goes_on(message: str) -> None:  # HA-9
    async with room(3, hands=1) as (here, players):
        player, _ = await whose_turn(players)
        flooder = next(other for other in players if other is not player)
        with contextlib.suppress(ConnectionClosed):
            for _ in range(2000):
                await flooder.say(message)
        assert await flooder.closed() in (connections.POLICY, 1006)
        assert here.table.report.refused["flooding"] == 1
        assert sum(here.table.report.refused.values()) < 100
        await player.act("fold")
        assert (await player.next(PlayerAction)).cause == "chosen"
        back = await here.enter(flooder.agent_id)
        assert back.state.your_seat is not None


@run
async def test_a_viewer_that_does_not_read_is_cut_off_and_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """HA-9"""
    monkeypatch.setattr(connections, "OUTBOX_FRAMES", 50)
    async with room(2, hands=1) as (here, players):
        known = set(here.table._floor.connections)
        deaf = await here.connect("deaf", max_queue=1)
        await deaf.send(Enter(agent_token=here.token("deaf")))
        await deaf.next(GameState)
        connection = next(one for one in here.table._floor.connections if one not in known)
        async with asyncio.timeout(PATIENCE):
            while connection in here.table._floor.connections:
                connection.send(Rejected(hand_number=None, action_index=None, reason="x" * 50_000))
                await asyncio.sleep(0)
        player, _ = await whose_turn(players)
        await player.act("fold")
        assert (await player.next(PlayerAction)).cause == "chosen"


# The door -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"table_id": "t2"}, "another table"),
        ({"now_ms": now_ms() - 3_600_000}, "expired"),
        ({"lifetime_ms": -1}, "expired"),
    ],
)
@run
async def test_a_token_that_is_not_for_here_and_now_is_refused(claims: dict[str, Any], reason: str) -> None:  # HA-9
    async with room() as (here, _):
        player = await here.connect("rocky")
        await player.send(Enter(agent_token=here.token("rocky", **claims)))
        refused = await player.rejected()
        assert reason in refused.reason
        assert refused.reason.startswith("bad_token:")
        assert await player.closed() == connections.POLICY
    assert here.table.report.refused == {"bad_token": 1}
    assert here.heard == []


@run
async def test_a_replayed_token_and_a_foreign_one_are_refused() -> None:  # HA-9
    async with room() as (here, _):
        token = here.token("rocky")
        first = await here.connect("rocky")
        await first.send(Enter(agent_token=token))
        await first.next(GameState)
        for stolen in (token, Room().token("rocky")):
            thief = await here.connect("rocky")
            await thief.send(Enter(agent_token=stolen))
            assert (await thief.rejected()).reason.startswith("bad_token:")
            assert await thief.closed() == connections.POLICY
        await first.send(Sit())
        assert (await first.next(GameState, lambda state: state.your_seat == 0)).seats[0].agent_id == "rocky"


@pytest.mark.parametrize("frame", [Sit(), PostBlind(), Stand(), Action(hand_number=1, action_index=0, action="fold")])
@run
async def test_nothing_comes_before_enter(frame: Any) -> None:  # HA-9
    async with room() as (here, _):
        player = await here.connect()
        await player.send(frame)
        assert (await player.rejected()).reason == "not_entered: the first frame must be `enter`"
        assert await player.closed() == connections.POLICY


@run
async def test_a_connection_that_never_enters_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:  # HA-9
    monkeypatch.setattr(door, "ENTER_SECONDS", 0.05)
    async with room() as (here, _):
        assert await (await here.connect()).closed() == connections.POLICY


@run
async def test_entering_twice_and_blinds_without_a_seat_are_refused() -> None:  # HA-9
    async with room() as (here, _):
        player = await here.enter("rocky")
        await player.send(PostBlind())
        assert (await player.rejected()).reason.startswith("no_seat:")
        await player.send(Enter(agent_token=here.token("rocky")))
        assert (await player.rejected()).reason.startswith("entered:")


@run
async def test_a_full_table_says_so() -> None:  # HA-9
    async with room(2, seats=2) as (here, _):
        player = await here.enter("late-comer")
        await player.send(Sit())
        assert (await player.rejected()).reason.startswith("full:")


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:8000", "null"])
@run
async def test_a_browser_is_not_let_in(origin: str) -> None:  # SF-6
    async with room() as (here, _):
        with pytest.raises(InvalidStatus) as refused:
            await here.connect(origin=origin)
        assert refused.value.response.status_code == 403


@run
async def test_a_visitor_that_speaks_no_websocket_leaves_no_trace_and_frames_are_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:  # SF-4 CAP-14
    caplog.set_level("DEBUG")
    async with room(2, hands=1) as (here, players):
        port = int(here.table.url.rpartition(":")[2])
        for greeting in (b"\x16\x03\x01\x00", b"GET / HTTP/1.1\r\n\r\n", b"POST /x HTTP/1.0\r\n\r\n", b""):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(greeting)
            writer.write_eof()
            await reader.read()
            writer.close()
        player, _ = await whose_turn(players)
        await player.act("fold")
        await player.next(HandResult)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("agentlab")]
    assert said == []


@run
async def test_the_table_listens_on_this_machine_alone() -> None:  # SF-6
    async with room() as (here, _):
        assert here.table.url.startswith("ws://127.0.0.1:")


@run
async def test_more_connections_than_a_table_needs_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:  # HA-9
    monkeypatch.setattr(door, "MAX_CONNECTIONS", 2)
    async with room(2, hands=1) as (here, players):
        assert await (await here.connect()).closed() == connections.BUSY
        player, _ = await whose_turn(players)
        await player.act("fold")
        assert (await player.next(PlayerAction)).cause == "chosen"


@run
async def test_strangers_who_say_nothing_keep_no_agent_out(monkeypatch: pytest.MonkeyPatch) -> None:  # HA-9
    monkeypatch.setattr(door, "MAX_CONNECTIONS", 4)
    async with room(2, hands=1) as (here, players):
        strangers = [await here.connect() for _ in range(6)]
        late = await here.enter("late")
        assert late.state.your_seat is None
        assert await strangers[0].closed() == 1006
        assert len(here.table._floor.connections) <= 4
        player, _ = await whose_turn(players)
        await player.act("fold")
        assert (await player.next(PlayerAction)).cause == "chosen"


@run
async def test_the_journal_holds_every_frame_received_and_no_token() -> None:  # HA-7
    async with room(2, hands=1) as (here, players):
        player, _ = await whose_turn(players)
        await player.act("fold")
        await player.next(HandResult)
    fold = {"type": "action", "handNumber": 1, "actionIndex": 0, "action": "fold"}
    said = [frame for agent, frame in here.heard if agent == player.agent_id]
    assert said == [{"type": "enter"}, {"type": "sit"}, {"type": "post_blind"}, fold]
