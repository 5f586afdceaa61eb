"""Reads what a model chose out of what it said. Thin for now: whole or embedded JSON objects, the last one counts."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Number = int | float | Decimal


@dataclass(frozen=True, slots=True)
class Choice:
    """An explicit choice. `action`: fold, check, call, bet, raise or all_in; `amount` as the model gave it, None
    where it gave none that can be read; `source`: content, reasoning or tool_call."""

    action: str
    amount: Number | None
    source: str


_VERBS = {"raise_to": "raise", "allin": "all_in", "all-in": "all_in", "all in": "all_in", "shove": "all_in"}
_KNOWN = {"fold", "check", "call", "bet", "raise", "all_in"}


def parse_choice(text: str, reasoning: str | None = None, tool_call: dict[str, Any] | None = None) -> Choice | None:
    """The model's own choice, or None where it cannot be read."""
    if tool_call:
        found = _from_object({"action": tool_call.get("name"), **(tool_call.get("args") or {})}, "tool_call")
        if found:
            return found
    for source, channel in (("content", text), ("reasoning", reasoning)):
        if channel and channel.strip():
            return _from_text(channel, source)
    return None


def _from_text(text: str, source: str) -> Choice | None:
    last = None
    for match in re.finditer(r"\{", text):
        try:
            value, _ = json.JSONDecoder(strict=False).raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        last = _from_object(value, source) or last
    return last


def _from_object(value: Any, source: str) -> Choice | None:
    if not isinstance(value, dict) or not isinstance(value.get("action"), str):
        return None
    verb = value["action"].strip().lower()
    verb = _VERBS.get(verb, verb)
    if verb not in _KNOWN:
        return None
    amount = next((value[name] for name in ("raise_to", "amount") if isinstance(value.get(name), int | float)), None)
    return Choice(verb, amount if verb in ("bet", "raise", "all_in") else None, source)
