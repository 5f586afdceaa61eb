"""A hand as its page shows it: frozen dataclasses made from what `reading.py` gives. Pure; templates place them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from agentlab.common.text import TextBlock, contains, plain, size, visible
from capture import wording
from capture.changes import Callout, changes
from capture.frozen import json_form
from capture.knowing import Knowing, action_words, arrange
from capture.knowledge import read_knowledge
from capture.links import TurnLinks
from capture.reading import Hand, TurnView
from capture.turns import Turn

STRIPES = 9  # colours in the stylesheet; a table has nine seats at most


@dataclass(frozen=True)
class Setting:
    """What a page knows beside the hand: where its parts are, what people call the agents, the time, the search."""

    links: TurnLinks
    now: datetime
    ttl: timedelta
    names: Mapping[str, str] = field(default_factory=dict)
    find: str = ""
    notes: Callable[[TurnView], Sequence[str]] = lambda view: ()


@dataclass(frozen=True)
class AgentMark:
    """An agent of this hand: its name (with its id where two share a name) and its stripe."""

    id: str
    name: str
    stripe: int
    turns: int
    captured: int
    kept: int

    @property
    def to_keep(self) -> int:
        return self.captured - self.kept


@dataclass(frozen=True)
class KnewPart:
    """What it knew: the reading, and where the exact record is. `arranged` is None where the bytes cannot be read."""

    anchor: str
    arranged: Knowing | None
    bytes: int
    raw_url: str
    recorded_url: str
    seats_url: str
    history_url: str
    subject: str
    found: bool = False
    recorded: Any = None  # filled where a search opens it

    @property
    def about(self) -> str:
        return plain(f"what it knew, {self.subject}")

    @property
    def size(self) -> str:
        return size(self.bytes)


@dataclass(frozen=True)
class PromptPart:
    """The exact prompt: one block to open, in it the envelope (closed) and what belongs to this turn alone."""

    block: TextBlock
    envelope: TextBlock
    remainder: TextBlock


@dataclass(frozen=True)
class SentPart:
    """`messages` is what left, one text each; empty: captured, and nothing was sent."""

    anchor: str
    messages: list[str]
    raw_url: str
    subject: str
    find: str = ""

    @property
    def about(self) -> str:
        return plain(f"what it sent, {self.subject}")


@dataclass(frozen=True)
class TurnPanel:
    """One turn of the stream. A part that is None was not recorded; `dim` says so in one line, `absence` why the
    whole turn is not here."""

    view: TurnView
    anchor: str
    name: str
    stripe: int
    did: str
    version: str
    version_url: str
    callouts: list[Callout]
    absence: str
    dim: str
    knew: KnewPart | None = None
    prompt: PromptPart | None = None
    response: TextBlock | None = None
    reasoning: TextBlock | None = None
    sent: SentPart | None = None

    @property
    def clamped(self) -> bool:
        return any(callout.kind == "changed" for callout in self.callouts)

    @property
    def noted(self) -> bool:
        return any(callout.label == "Note" for callout in self.callouts)

    @property
    def lost(self) -> bool:
        return self.view.turn is None and self.view.capture_outcome in wording.LOST

    @property
    def unusual(self) -> bool:
        return self.clamped or self.noted or self.lost or self.view.is_fallback

    @property
    def found(self) -> int:
        """How many of its parts a search marks."""
        texts = [self.response, self.reasoning, self.prompt.block if self.prompt else None]
        return (
            sum(block.found for block in texts if block)
            + bool(self.knew and self.knew.found)
            + bool(self.sent and any(contains(message, self.sent.find) for message in self.sent.messages))
        )


@dataclass(frozen=True)
class HandPanel:
    """A hand: who played, what became of its turns, the stream, and why it is empty where it is."""

    table_id: str
    hand_number: int
    agents: list[AgentMark]
    turns: list[TurnPanel]
    counts: list[str]
    losses: str
    empty: str
    remaining: str
    played_at: datetime | None
    buffer_answered: bool
    find: str

    @property
    def title(self) -> str:
        return f"{self.table_id}:{self.hand_number}"

    @property
    def found(self) -> int:
        return sum(panel.found for panel in self.turns)

    @property
    def keepable(self) -> list[AgentMark]:
        """The agents with recorded turns that are not kept yet."""
        return [agent for agent in self.agents if agent.to_keep > 0]

    @property
    def has_prompts(self) -> bool:
        return any(panel.prompt for panel in self.turns)


def present_hand(hand: Hand, setting: Setting) -> HandPanel:
    agents = agent_marks(hand, setting.names)
    played = [view.played_at for view in hand.turns if view.played_at is not None]
    return HandPanel(
        hand.table_id,
        hand.hand_number,
        list(agents.values()),
        _panels(hand, agents, setting),
        wording.outcome_counts(hand.turns),
        wording.losses(hand.turns),
        wording.empty_hand(hand, now=setting.now, ttl=setting.ttl),
        wording.remaining(hand, now=setting.now, ttl=setting.ttl),
        min(played, default=None),
        hand.buffer_answered,
        setting.find,
    )


def agent_marks(hand: Hand, names: Mapping[str, str]) -> dict[str, AgentMark]:
    """The hand's agents by id, in the order of their ids, so that a stripe stays with its agent from hand to hand as
    long as the company is the same."""
    ids = sorted({view.agent_id for view in hand.turns})
    shown = [names.get(agent_id, agent_id) for agent_id in ids]
    marks = {}
    for number, (agent_id, name) in enumerate(zip(ids, shown, strict=True)):
        own = [view for view in hand.turns if view.agent_id == agent_id]
        marks[agent_id] = AgentMark(
            agent_id,
            name if shown.count(name) == 1 else f"{name} ({agent_id})",
            number % STRIPES,
            len(own),
            sum(view.turn is not None for view in own),
            sum(view.kept for view in own),
        )
    return marks


def present_turn(hand: Hand, view: TurnView, setting: Setting) -> TurnPanel:
    """One turn of the hand, for the page of a part. Raises ValueError where the view is none of the hand's."""
    panels = _panels(hand, agent_marks(hand, setting.names), setting)
    return panels[hand.turns.index(view)]


def _panels(hand: Hand, agents: Mapping[str, AgentMark], setting: Setting) -> list[TurnPanel]:
    panels = []
    anchors: set[str] = set()
    envelopes: dict[tuple[str, str], int] = {}  # where each agent's envelope was first seen in this hand
    for view in hand.turns:
        anchor = _anchor(view, anchors)
        same_as = None
        if view.turn is not None:
            key = (view.agent_id, view.turn.prompt.envelope_hash)
            same_as = envelopes.get(key)
            envelopes[key] = view.action_index
        panels.append(_panel(hand, view, agents[view.agent_id], anchor, same_as, setting))
    return panels


def _anchor(view: TurnView, taken: set[str]) -> str:
    """`t7-rocky`: two agents may share an index, and two ids may look alike once they are an anchor."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", view.agent_id)[:64]
    anchor = base = f"t{view.action_index}-{slug}"
    number = 2
    while anchor in taken:
        anchor = f"{base}.{number}"
        number += 1
    taken.add(anchor)
    return anchor


def _panel(
    hand: Hand, view: TurnView, agent: AgentMark, anchor: str, same_as: int | None, setting: Setting
) -> TurnPanel:
    parts = _Parts(hand, view, anchor, f"turn {view.action_index} of {agent.name}", setting)
    panel = TurnPanel(
        view=view,
        anchor=anchor,
        name=agent.name,
        stripe=agent.stripe,
        did=action_words(view.action, view.amount) if view.action else "no action known",
        version=_version(view),
        version_url=setting.links.version(view.agent_id, view.agent_version_id) if view.agent_version_id else "",
        callouts=[],
        absence="",
        dim="",
    )
    turn = view.turn
    if turn is None:
        why = wording.absence(view, now=setting.now, ttl=setting.ttl, buffer_answered=hand.buffer_answered)
        return replace(panel, absence=why)
    knew = parts.knew(turn)
    limits = knew.arranged.limits if knew and knew.arranged else None
    return replace(
        panel,
        callouts=[*changes(turn, limits), *(Callout("note", "Note", visible(note)) for note in setting.notes(view))],
        dim=_dim(turn),
        knew=knew,
        prompt=parts.prompt(turn, same_as),
        response=parts.text("said", "Response", "response", turn.response, is_open=True),
        reasoning=parts.text("reasoned", "Reasoning", "reasoning", turn.reasoning) if turn.reasoning else None,
        sent=parts.sent(turn),
    )


def _version(view: TurnView) -> str:
    if view.agent_version_id is None:
        return "version unknown"
    return view.agent_version_id.removeprefix(f"{view.agent_id}-")


def _dim(turn: Turn) -> str:
    """One line for what was not recorded: absent is not empty."""
    missing = [("What it knew", turn.knowledge), ("what it sent", turn.decision)]
    names = [name for name, value in missing if value is None]
    if not names:
        return ""
    words = " and ".join(names)
    return f"{words[0].upper()}{words[1:]} {'was' if len(names) == 1 else 'were'} not recorded for this turn."


class _Parts:
    """Makes the parts of one turn: each with its anchor, its own page and its exact bytes."""

    def __init__(self, hand: Hand, view: TurnView, anchor: str, subject: str, setting: Setting) -> None:
        self._key = (hand.table_id, hand.hand_number, view.agent_id, view.action_index)
        self._anchor, self._subject, self._setting = anchor, subject, setting

    def _part(self, name: str) -> str:
        return self._setting.links.part(*self._key, name)

    def _raw(self, name: str) -> str:
        return self._setting.links.raw(*self._key, name)

    def text(self, anchor: str, label: str, name: str, text: str, *, is_open: bool = False) -> TextBlock:
        return TextBlock(
            f"{self._anchor}-{anchor}",
            label,
            text,
            raw_url=self._raw(name),
            part_url=self._part(name),
            subject=self._subject,
            find=self._setting.find,
            open=is_open,
        )

    def prompt(self, turn: Turn, same_as: int | None) -> PromptPart:
        prompt, find = turn.prompt, self._setting.find
        envelope = TextBlock(
            f"{self._anchor}-envelope",
            "The part that repeats",
            prompt.envelope,
            note="" if same_as is None else f"unchanged since turn {same_as}",
            subject=self._subject,
            find=find,
            level=4,
        )
        remainder = TextBlock(
            f"{self._anchor}-remainder", "This turn's part", prompt.remainder, subject=self._subject, find=find
        )
        note = "what it was told, exactly"
        if same_as is not None:
            note += f"; {size(envelope.bytes)} of it as on turn {same_as}"
        block = TextBlock(
            f"{self._anchor}-prompt",
            "Prompt",
            prompt.text,
            raw_url=self._raw("prompt"),
            part_url=self._part("prompt"),
            note=note,
            subject=self._subject,
            find=find,
            lazy=True,
        )
        return PromptPart(block, envelope, remainder)

    def knew(self, turn: Turn) -> KnewPart | None:
        if turn.knowledge is None:
            return None
        arguments = arguments_of(turn.knowledge)
        find = self._setting.find
        found = bool(find) and arguments is not None and contains(json_text(arguments), find)
        return KnewPart(
            f"{self._anchor}-knew",
            arrange(arguments, self._setting.names) if isinstance(arguments, Mapping) else None,
            len(turn.knowledge),
            self._raw("knowledge"),
            self._part("recorded"),
            self._part("seats"),
            self._part("history"),
            self._subject,
            found,
            arguments if found else None,
        )

    def sent(self, turn: Turn) -> SentPart | None:
        if turn.decision is None:
            return None
        return SentPart(
            f"{self._anchor}-sent",
            [json_text(message) for message in turn.decision],
            self._raw("decision"),
            self._subject,
            self._setting.find,
        )


def arguments_of(knowledge: bytes) -> Any:
    """The recorded arguments; None where the bytes are not what capture writes."""
    try:
        return read_knowledge(knowledge)
    except ValueError:
        return None


def json_text(value: Any, indent: int | None = None) -> str:
    """A recorded value as JSON text: letters as themselves, lone surrogates as the escapes that JSON has for them."""
    text = json.dumps(json_form(value), ensure_ascii=False, indent=indent)
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match.group()):04x}", text)
