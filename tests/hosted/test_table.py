"""A table over real sockets: turns, clocks, comings and goings, and frames that nobody should send."""

import asyncio
import contextlib
import functools
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus

from agentlab.hosted import connections, door
from agentlab.hosted.deals import Deals
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
    YourTurn,
)
from agentlab.hosted.table_config import TableConfig, now_ms
from tests.conftest import SHARED_DATA
from tests.hosted.sockets import PATIENCE, Room, plays_everything, plays_safely, room, whose_turn

SHORT, LONG = 150, 60_000
"""Milliseconds for a turn: one that is let run out, and one that no test waits for."""


def run(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The test's coroutine, in an event loop of its own."""

    @functools.wraps(test)
    def runs(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))  # type: ignore[arg-type]

    return runs


@pytest.mark.parametrize(
    "settings",
    [
        {"table_id": ""},
        {"table_id": "t\0"},
        {"seats": 10},
        {"wait_for": 1},
        {"seats": 4, "wait_for": 5},
        {"small_blind": 0},
        {"small_blind": 200},
        {"buy_in": 99},
        {"ante": -1},
        {"turn_ms": 0},
    ],
)
def test_a_table_at_which_nothing_could_be_played_is_refused(settings: dict[str, Any]) -> None:  # SF-4
    with pytest.raises(ValueError, match=r"^[a-z].*$"):
        TableConfig(**{"table_id": "t1", "public_key": "", **settings})


# Playing ------------------------------------------------------------------------------------------------------
@run
async def test_a_hand_goes_from_the_blinds_to_its_result() -> None:  # HA-1 HA-9
    async with room(3, hands=1) as (here, players):
        for index in range(12):
            player, turn = await whose_turn(players)
            assert (player.state.hand_number, player.state.action_index) == (1, index)
            await player.act("call" if "call" in turn.legal_actions else "check")
            done = await player.next(PlayerAction, lambda done, index=index: done.action_index == index)
            assert (done.agent_id, done.cause) == (player.agent_id, "chosen")
        results = [await player.next(HandResult) for player in players]
    assert results[0] == results[1] == results[2]
    assert (len(results[0].board), results[0].action_index, results[0].showdown) == (5, 12, True)
    assert sum(seat.net for seat in results[0].seats) == 0
    assert here.table.report.hands == 1
    assert here.table.report.refused == {}


@run
async def test_the_same_seed_deals_the_same_hands() -> None:  # HA-9
    seen = []
    for _ in range(2):
        async with room(2, hands=1) as (_, players):
            seen.append([(await player.next(GameState, lambda state: state.hole_cards is not None)).hole_cards
                         for player in players])  # fmt: skip
    assert seen[0] == seen[1]


@run
async def test_folding_first_twice_in_a_row_starts_the_next_hand_each_time() -> None:  # HA-9
    async with room(2, hands=3) as (here, players):
        for number in (1, 2, 3):
            player, _ = await whose_turn(players)
            assert player.state.hand_number == number
            await player.act("fold")
            result = await player.next(HandResult)
            assert (result.hand_number, result.showdown) == (number, False)
    assert here.table.report.hands == 3


@run
async def test_an_all_in_that_is_called_runs_out_to_five_cards_and_one_result() -> None:  # HA-9
    async with room(2, hands=1) as (_, players):
        player, turn = await whose_turn(players)
        assert turn.chip_range
        await player.act("raise", turn.chip_range.max)
        other, turn = await whose_turn([other for other in players if other is not player])
        assert turn.legal_actions == ["fold", "call"]
        assert turn.chip_range is None
        await other.act("call")
        assert len((await player.next(HandResult)).board) == 5
        await player.closed()
        assert sum(isinstance(frame, HandResult) for frame in player.frames) == 1


@run
async def test_a_busted_seat_buys_in_again_so_that_every_hand_is_played() -> None:  # HA-9
    async with room(2, hands=12, buy_in=300) as (here, players):
        await asyncio.gather(*(plays_everything(player) for player in players))
    assert here.table.report.hands == 12
    assert here.table.report.bought_in_again > 0
    results = [frame for frame in players[0].frames if isinstance(frame, HandResult)]
    assert len(results) == 12
    assert all(seat.stack - seat.net > 0 for result in results for seat in result.seats)


@run
async def test_an_agent_that_has_not_agreed_to_pay_blinds_is_not_dealt_in() -> None:  # HA-9
    async with room(2) as (here, players):
        idle = await here.enter("idle")
        await idle.send(Sit())
        await idle.next(GameState, lambda state: state.your_seat == 2)
        playing = asyncio.create_task(here.table.play(1))
        player, _ = await whose_turn(players)
        assert [seat.status for seat in player.state.seats] == ["active", "active", "out"]
        await player.act("fold")
        await playing
        assert {seat.agent_id for seat in (await player.next(HandResult)).seats} == {"agent-0", "agent-1"}


# Clocks -------------------------------------------------------------------------------------------------------
@run
async def test_silence_where_checking_is_free_is_a_check() -> None:  # HA-9
    async with room(2, hands=1, turn_ms=1500) as (here, players):
        player, _ = await whose_turn(players)
        await player.act("call")
        done = await player.next(PlayerAction, lambda done: done.action_index == 1)
        assert (done.action, done.cause) == ("check", "timeout")
    assert here.table.report.forced["timeout"] >= 1


@run
async def test_silence_against_a_bet_is_a_fold_when_the_turn_ends_and_not_before() -> None:  # HA-9
    async with room(2, hands=1, turn_ms=SHORT) as (_, players):
        asked_at = now_ms()
        player, turn = await whose_turn(players)
        done = await player.next(PlayerAction)
        assert (done.action, done.cause) == ("fold", "timeout")
        assert now_ms() >= turn.turn_ends_at  # the frame's clock is the table's, in milliseconds
        assert 0 <= turn.turn_ends_at - asked_at - SHORT < LONG


@run
async def test_an_answer_after_its_turn_is_late_and_counted() -> None:  # HA-9
    async with room(2, hands=1000, turn_ms=SHORT) as (here, players):
        player, _ = await whose_turn(players)
        await player.next(HandResult)
        await player.act("call", hand_number=1, action_index=0)
        refused = await player.rejected()
        assert (refused.hand_number, refused.action_index) == (1, 0)
        assert refused.reason.startswith("late:")
    assert here.table.report.refused == {"late": 1}
    assert here.table.report.refused_by == {player.agent_id: 1}


@run
async def test_an_answer_belongs_to_one_question() -> None:  # HA-9
    async with room(2, hands=1) as (_, players):
        player, _ = await whose_turn(players)
        await player.act("call")
        other, _ = await whose_turn(players)
        await other.act("raise", 400)
        player, turn = await whose_turn(players)  # the price has risen
        assert turn.legal_actions[:2] == ["fold", "call"]
        await player.act("call", action_index=0)
        assert (await player.rejected()).reason.startswith("doubled:")
        await player.act("call")
        assert (await player.next(PlayerAction)).amount == 300


# Coming and going ---------------------------------------------------------------------------------------------
@run
async def test_who_stands_up_is_played_safely_at_once_when_his_turn_comes() -> None:  # HA-9
    async with room(3, hands=1) as (here, players):
        first, _ = await whose_turn(players)
        leaver = next(player for player in players if player is not first)
        await leaver.send(Stand())
        await leaver.next(GameState)
        await first.act("raise", 300)
        done = await first.next(PlayerAction, lambda done: done.agent_id == leaver.agent_id)
        assert (done.action, done.cause) == ("fold", "left")
    assert here.table.report.forced["left"] == 1


@run
async def test_who_stands_up_in_his_own_turn_ends_it() -> None:  # HA-9
    async with room(2, hands=1) as (_, players):
        player, _ = await whose_turn(players)
        await player.send(Stand())
        done = await player.next(PlayerAction)
        assert (done.agent_id, done.action, done.cause) == (player.agent_id, "fold", "left")
        assert (await player.next(HandResult)).hand_number == 1


@run
async def test_a_small_blind_that_leaves_after_posting_breaks_nothing() -> None:  # HA-9
    async with room(3, hands=2) as (here, players):
        first, _ = await whose_turn(players)
        small = players[next(seat.seat for seat in first.state.seats if seat.bet == 50)]
        await small.send(Stand())
        playing = [asyncio.create_task(plays_safely(player)) for player in players if player is not small]
        await first.act("call")
        await asyncio.gather(*playing)
    results = [frame for frame in first.frames if isinstance(frame, HandResult)]
    assert [sum(seat.net for seat in result.seats) for result in results] == [0, 0]
    assert [len(result.seats) for result in results] == [3, 2]
    assert here.table.report.hands == 2


@run
async def test_an_agent_that_comes_back_has_its_seat_and_its_open_turn() -> None:  # HA-9
    async with room(2, hands=1) as (here, players):
        player, turn = await whose_turn(players)
        before = player.state
        await player.drop()
        back = await here.connect(player.agent_id)
        await back.send(Enter(agent_token=here.token(player.agent_id)))
        again = await back.next(YourTurn)
        assert again == turn
        assert (back.state.your_seat, back.state.hole_cards) == (before.your_seat, before.hole_cards)
        await back.act("fold")
        assert (await back.next(PlayerAction)).cause == "chosen"


@run
async def test_a_second_connection_of_an_agent_replaces_the_first() -> None:  # HA-9
    async with room(2, hands=1) as (here, players):
        player, _ = await whose_turn(players)
        newer = await here.connect(player.agent_id)
        await newer.send(Enter(agent_token=here.token(player.agent_id)))
        await newer.next(YourTurn)
        assert await player.closed() == connections.REPLACED
        await newer.act("fold")
        assert (await newer.next(PlayerAction)).agent_id == player.agent_id
        assert (await newer.next(HandResult)).hand_number == 1


@run
async def test_a_disconnected_agent_has_until_the_end_of_its_turn() -> None:  # HA-9
    async with room(2, hands=1, turn_ms=SHORT) as (here, players):
        player, turn = await whose_turn(players)
        other = next(other for other in players if other is not player)
        await player.drop()
        done = await other.next(PlayerAction)
        assert (done.action, done.cause) == ("fold", "disconnected")
        assert now_ms() >= turn.turn_ends_at
    assert here.table.report.forced == {"disconnected": 1}


@run
async def test_a_hand_goes_on_when_everybody_is_gone() -> None:  # HA-9
    async with room(3, turn_ms=SHORT) as (here, players):
        playing = asyncio.create_task(here.table.play(1))
        await whose_turn(players)
        for player in players:
            await player.drop()
        assert (await playing).hands == 1


@run
async def test_before_a_hand_the_table_asks_which_deployment_plays() -> None:  # HA-11
    asked: list[tuple[int, list[str]]] = []

    async def deployments(number: int, agents: list[str]) -> dict[str, int]:
        asked.append((number, agents))
        if number == 3:
            raise ConnectionError("the database is away")
        return {"agent-0": 10 + number}

    async with room(2) as (here, players):
        here.table._deployments = deployments
        playing = asyncio.create_task(here.table.play(3))
        played = []
        for _ in range(3):
            player, _ = await whose_turn(players)
            await player.act("fold")
            await players[0].next(HandResult)
            played.append(players[0].state.deployment_id)
        await playing
    assert asked == [(number, ["agent-0", "agent-1"]) for number in (1, 2, 3)]
    assert played == [11, 12, 12]
    assert {state.deployment_id for state in players[1].frames if isinstance(state, GameState)} <= {None, 1}


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


# Real hands ---------------------------------------------------------------------------------------------------
@run
async def test_real_hands_are_dealt_and_those_with_too_many_seats_are_named() -> None:  # HA-9
    deals = [
        dealt
        for dealt in Deals(SHARED_DATA / "hands", seed=1)
        if dealt.source.startswith(("llmtour_rp010", "handhq", "pluribus_102_0"))
    ]
    async with room(4, turn_ms=2000) as (here, players):
        playing = [asyncio.create_task(plays_safely(player)) for player in players]
        report = await here.table.play(deals=deals)
    await asyncio.gather(*playing)
    small = [dealt for dealt in deals if dealt.deal and len(dealt.deal.stacks) <= 4]
    assert report.hands == len(small) >= 10
    assert report.skipped == {
        dealt.source: f"it has {len(dealt.deal.stacks)} seats, 4 are ready"
        for dealt in deals
        if dealt.deal and len(dealt.deal.stacks) > 4
    }
    results = [frame for frame in players[0].frames if isinstance(frame, HandResult)]
    assert [sorted(seat.stack - seat.net for seat in result.seats) for result in results] == [
        sorted(dealt.deal.stacks) for dealt in small if dealt.deal
    ]


@run
async def test_more_hands_than_files_go_round_again_and_fewer_stop_early() -> None:  # HA-9
    deals = [dealt for dealt in Deals(SHARED_DATA / "hands", seed=1) if dealt.source.startswith("handhq_cash_0")][2:4]
    for hands, played in ((5, 5), (1, 1), (None, 2)):
        async with room(2) as (here, players):
            playing = [asyncio.create_task(plays_safely(player)) for player in players]
            assert (await here.table.play(hands, deals)).hands == played
        await asyncio.gather(*playing)


@run
async def test_deals_that_all_cannot_be_dealt_end_the_game() -> None:  # HA-9
    deals = Deals(SHARED_DATA / "hands" / "pluribus_102_0.phh", seed=1)
    async with room(2) as (here, _):
        report = await here.table.play(7, deals)
    assert (report.hands, report.skipped) == (0, {"pluribus_102_0.phh": "it has 6 seats, 2 are ready"})


# Whatever happens ---------------------------------------------------------------------------------------------
async def wanders(here: Room, agent_id: str, choice: random.Random, ended: asyncio.Event) -> list[HandResult]:
    """Plays at random, leaves the connection now and then, now and then in its turn, and comes back."""
    results = []
    while not ended.is_set():
        try:
            player = await here.sit(agent_id)
            while not ended.is_set():
                frame = await player.next(YourTurn | HandResult)  # type: ignore[arg-type]
                if choice.random() < 0.1:
                    await player.drop()
                    break
                if isinstance(frame, HandResult):
                    results.append(frame)
                    continue
                move = choice.choice([*frame.legal_actions, "fold"])
                amount = choice.choice([frame.chip_range.min, frame.chip_range.max]) if move == "raise" else None
                await player.act(move, amount)
        except (ConnectionClosed, OSError):
            pass
    return results


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(count=st.integers(2, 9), seed=st.integers(0, 2**32))
def test_with_players_who_come_and_go_every_hand_ends_and_no_chip_is_lost(count: int, seed: int) -> None:  # HA-9
    async def scenario() -> None:
        ended = asyncio.Event()
        async with room(seed=seed, turn_ms=60, wait_for=2, buy_in=1000) as (here, _):
            names = [f"agent-{number}" for number in range(count)]
            playing = [
                asyncio.create_task(wanders(here, name, random.Random(f"{seed}{name}"), ended)) for name in names
            ]
            report = await here.table.play(6)
            ended.set()
        results = [result for frames in await asyncio.gather(*playing) for result in frames]
        assert report.hands == 6
        for result in results:
            assert sum(seat.net for seat in result.seats) == 0
            assert sum(pot.amount for pot in result.pots) == sum(seat.won for seat in result.seats)
            assert min(seat.stack for seat in result.seats) >= 0

    asyncio.run(scenario())


def test_rejections_are_plain_json() -> None:  # HA-1
    text = connections.encode(Rejected(hand_number=1, action_index=2, reason="late: that turn is over"))
    assert json.loads(text) == {
        "type": "rejected",
        "handNumber": 1,
        "actionIndex": 2,
        "reason": "late: that turn is over",
    }
