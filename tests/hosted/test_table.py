"""A table over real sockets: turns, clocks, comings and goings."""

import asyncio
import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from agentlab.hosted import connections
from agentlab.hosted.deals import Deals
from agentlab.hosted.frames import (
    Enter,
    GameState,
    HandResult,
    PlayerAction,
    Rejected,
    Sit,
    Stand,
    YourTurn,
)
from agentlab.hosted.table_config import TableConfig, now_ms
from tests.conftest import SHARED_DATA
from tests.hosted.sockets import Room, plays_everything, plays_safely, room, run, whose_turn

SHORT, LONG = 150, 60_000
"""Milliseconds for a turn: one that is let run out, and one that no test waits for."""


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
