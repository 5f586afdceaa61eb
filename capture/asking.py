"""Reading what a request asks for: a hand, an agent of it, one turn, one of its parts. Refusals are sentences."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from capture.reading import check_asked_id, check_hand


class BadQuestion(ValueError):
    """The request names no hand or turn that there could be. The message is for the person who asked."""


@dataclass(frozen=True)
class Asked:
    """A hand (`hand_number` None: none was asked for), perhaps of one agent alone, and a search in it."""

    table_id: str = ""
    hand_number: int | None = None
    agent_id: str = ""
    find: str = ""


@dataclass(frozen=True)
class AskedTurn:
    table_id: str
    hand_number: int
    agent_id: str
    action_index: int


def asked_hand(query: Mapping[str, str]) -> Asked:
    """`table`, `hand`, `agent` and `q`. A table given as `T-4:184` names the hand too, as a copied id does. Ids are
    taken exactly: space around one may belong to it."""
    table, hand = query.get("table", ""), query.get("hand", "").strip()
    if table and not hand and (whole := re.fullmatch(r"(.+):([0-9]+)\s*", table, re.DOTALL)):
        table, hand = whole.groups()
    agent, find = _unless_blank(query.get("agent", "")), query.get("q", "").strip()
    if not table.strip() and not hand:
        return Asked(find=find)
    if not hand:
        raise BadQuestion("Which hand? Give its number beside the table, or the whole id, such as T-4:184.")
    number = whole_number(hand, "The hand")
    _check(table, number, agent)
    return Asked(table, number, agent, find)


def asked_turn(query: Mapping[str, str]) -> AskedTurn:
    """`table`, `hand`, `agent` and `turn`, all of them."""
    table, agent = query.get("table", ""), query.get("agent", "")
    hand = whole_number(query.get("hand", ""), "The hand")
    turn = whole_number(query.get("turn", ""), "The turn")
    if not agent:
        raise BadQuestion("The agent is missing.")
    _check(table, hand, agent)
    return AskedTurn(table, hand, agent, turn)


def whole_number(text: str, name: str) -> int:
    if not re.fullmatch(r"[0-9]+", text, re.ASCII):
        raise BadQuestion(f"{name} must be a whole number.")
    if len(text) > 19:  # longer than any number that a store holds
        raise BadQuestion(f"{name} is too large a number.")
    return int(text)


def asked_agent(query: Mapping[str, str]) -> str:
    """`agent` alone, perhaps ""."""
    agent = _unless_blank(query.get("agent", ""))
    try:
        check_asked_id("agent", agent or "-")
    except ValueError as error:
        raise BadQuestion(str(error)) from None
    return agent


def _unless_blank(text: str) -> str:
    return text if text.strip() else ""


def _check(table_id: str, hand_number: int, agent_id: str) -> None:
    try:
        check_hand(table_id, hand_number, agent_id or "-")
    except ValueError as error:
        raise BadQuestion(str(error)) from None
