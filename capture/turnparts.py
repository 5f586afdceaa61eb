"""One part of one turn, found and made ready to be shown or handed out as it is."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from agentlab.agents.models import LOST
from agentlab.common.text import TextBlock
from capture import wording
from capture.parts import Setting, arguments_of, json_text
from capture.presenting import TurnPanel, present_turn
from capture.reading import Hand, TurnView
from capture.turns import Turn


@dataclass(frozen=True)
class FoundPart:
    """What to render. `status` 404: no such turn or part; 410: it was there, and is gone; 503: that is not known."""

    heading: str
    template: str
    context: Mapping[str, Any]
    anchor: str = ""
    status: int = 200
    tools: Any = None  # has raw_url and about


class Absent(NamedTuple):
    """Why there is nothing to show, and the status that says the same (as in FoundPart)."""

    sentence: str
    status: int


NO_SUCH_PART = Absent("This part was not recorded for this turn.", 404)


def view_of(hand: Hand, action_index: int) -> TurnView | None:
    return next((view for view in hand.turns if view.action_index == action_index), None)


def find_part(hand: Hand, action_index: int, name: str, setting: Setting, *, whole: bool = False) -> FoundPart:
    """The part `name` of that turn of a hand read for one agent."""
    view = view_of(hand, action_index)
    if view is None or view.turn is None:
        absent = _why(hand, view, now=setting.now, ttl=setting.ttl)
        return _absent(absent, present_turn(hand, view, setting).anchor if view else "")
    panel = present_turn(hand, view, setting)
    made = _text_part(panel, name, whole) or _knowledge_part(panel, name, whole)
    return made or _absent(NO_SUCH_PART, panel.anchor)


def _why(hand: Hand, view: TurnView | None, *, now: datetime, ttl: timedelta) -> Absent:
    """Why nothing of a turn can be shown. What a buffer that does not answer may have is neither missing nor gone."""
    if view is None:
        return Absent("No such turn is known.", 404) if hand.buffer_answered else Absent(wording.UNREACHABLE, 503)
    sentence = wording.absence(view, now=now, ttl=ttl, buffer_answered=hand.buffer_answered)
    if view.is_fallback or view.capture_outcome in LOST:
        return Absent(sentence, 404)
    return Absent(sentence, 410 if hand.buffer_answered or view.damaged else 503)


def _absent(absent: Absent, anchor: str) -> FoundPart:
    context = {"absence": absent.sentence}
    return FoundPart("Nothing to show", "capture/_gone.html", context, anchor, absent.status)


def _heading(what: str, panel: TurnPanel) -> str:
    return f"{what}, turn {panel.view.action_index} of {panel.name}"


def _text_part(panel: TurnPanel, name: str, whole: bool) -> FoundPart | None:
    if name == "prompt" and panel.prompt:
        prompt = replace(
            panel.prompt,
            envelope=replace(panel.prompt.envelope, whole=whole),
            remainder=replace(panel.prompt.remainder, whole=whole),
        )
        block = panel.prompt.block
        return FoundPart(
            _heading("Prompt", panel), "capture/_prompt_body.html", {"prompt": prompt}, panel.anchor, tools=block
        )
    blocks: dict[str, TextBlock | None] = {"response": panel.response, "reasoning": panel.reasoning}
    chosen = blocks.get(name)
    if chosen is None:
        return None
    block = replace(chosen, whole=whole)
    return FoundPart(
        _heading(block.label, panel), "capture/_text_part.html", {"text": block}, panel.anchor, tools=block
    )


def _knowledge_part(panel: TurnPanel, name: str, whole: bool) -> FoundPart | None:
    if name != "knowledge" or panel.knew is None or panel.knew.recorded is None:
        return None
    return FoundPart(
        _heading("What it knew", panel),
        "capture/_knew_more.html",
        {"knew": replace(panel.knew, whole=whole)},
        panel.anchor,
        tools=panel.knew,
    )


def raw_part(hand: Hand, action_index: int, name: str, *, now: datetime, ttl: timedelta) -> str | Absent:
    """The exact text of a part, or why there is none. Knowledge and messages are JSON made from what is stored; prompt,
    response and reasoning are the stored text itself."""
    view = view_of(hand, action_index)
    if view is None or view.turn is None:
        return _why(hand, view, now=now, ttl=ttl)
    text = _raw(view.turn, name)
    return NO_SUCH_PART if text is None else text


def _raw(turn: Turn, name: str) -> str | None:
    texts = {"prompt": turn.prompt.text, "response": turn.response, "reasoning": turn.reasoning}
    if name in texts:
        return texts[name]
    if name == "decision" and turn.decision is not None:
        return json_text(turn.decision)
    if name == "knowledge" and turn.knowledge is not None:
        arguments = arguments_of(turn.knowledge)
        return turn.knowledge.hex() if arguments is None else json_text(arguments, indent=2)
    return None
