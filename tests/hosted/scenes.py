"""Frames and prompts for tests of the agent: one hand of three, seen from the button."""

from typing import Any

import msgspec

from agentlab.agents.base_prompt import BASE_PROMPT
from agentlab.hosted.context import Script, assemble, build_turn_context
from agentlab.hosted.frames import (
    Action,
    ChipRange,
    GameState,
    HandResult,
    PlayerAction,
    PotResult,
    SeatResult,
    SeatView,
    YourTurn,
)
from agentlab.hosted.house_roster import HouseAgent

FAR = 4_000_000_000_000


def seat(number: int, agent: str, **changes: Any) -> SeatView:
    known = {"stack": 9900, "bet": 0, "status": "active", "connected": True, "cards": None}
    return SeatView(seat=number, agent_id=agent, **{**known, **changes})


def game_state(**changes: Any) -> GameState:
    """Hand 7, before the flop: nit posted 50, bluffy 100, and it is for rocky, on the button, to act first."""
    known: dict[str, Any] = {
        "table_id": "t-1",
        "hand_number": 7,
        "action_index": 0,
        "street": "preflop",
        "board": [],
        "pot": 150,
        "pots": [],
        "current_bet": 100,
        "button": 0,
        "small_blind": 50,
        "big_blind": 100,
        "ante": 0,
        "seats": [seat(0, "rocky", stack=10_000), seat(1, "nit", stack=9950, bet=50), seat(2, "bluffy", bet=100)],
        "to_act": 0,
        "your_seat": 0,
        "hole_cards": ["As", "Kh"],
        "to_call": 100,
        "deployment_id": 1,
    }
    return GameState(**{**known, **changes})


def your_turn(**changes: Any) -> YourTurn:
    known: dict[str, Any] = {
        "legal_actions": ["fold", "call", "raise"],
        "chip_range": ChipRange(min=200, max=10_000),
        "turn_ends_at": FAR,
    }
    return YourTurn(**{**known, **changes})


def player_action(index: int, agent: str, action: str, amount: int | None = None, **changes: Any) -> PlayerAction:
    known: dict[str, Any] = {"hand_number": 7, "street": "preflop", "all_in": False, "cause": "chosen", "seat": 0}
    return PlayerAction(action_index=index, agent_id=agent, action=action, amount=amount, **{**known, **changes})


def hand_result(number: int, **changes: Any) -> HandResult:
    known: dict[str, Any] = {
        "table_id": "t-1",
        "action_index": 3,
        "board": ["7h", "Td", "2c"],
        "showdown": False,
        "pots": [PotResult(amount=300, shares={2: 300})],
        "seats": [seat_result(0, "rocky", -100), seat_result(1, "nit", -100), seat_result(2, "bluffy", 200)],
    }
    return HandResult(hand_number=number, **{**known, **changes})


def seat_result(number: int, agent: str, net: int, cards: list[str] | None = None) -> SeatResult:
    return SeatResult(
        seat=number, agent_id=agent, net=net, won=max(net, 0), returned=0, stack=10_000, status="active", cards=cards
    )


def wire(frame: Any) -> dict[str, Any]:
    """A frame as the agent remembers it."""
    value: dict[str, Any] = msgspec.to_builtins(frame)
    return value


def prompt_for(resident: HouseAgent, *, whispers: list[dict[str, str]] | None = None, **state: Any) -> str:
    """What a house agent is told at the button of `game_state`."""
    turn = state.pop("turn", your_turn())
    log = state.pop("log", [])
    context = build_turn_context(
        state=wire(game_state(**state)),
        turn=wire(turn),
        action_log=[wire(action) for action in log],
        whispers=whispers or [],
    )
    script = Script(BASE_PROMPT, resident.strategy, tuple((s["name"], s["text"]) for s in resident.skill_sections))
    return assemble(script, context.value).text


def action(**fields: Any) -> Action:
    return Action(**{"hand_number": 7, "action_index": 0, "action": "call", **fields})
