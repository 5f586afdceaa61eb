"""A hand as its page shows it: frozen dataclasses made from what `reading.py` gives. Pure; templates place them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from agentlab.agents.models import LOST, ChoiceChange, TurnNote
from agentlab.common.text import TextBlock, contains
from capture import wording
from capture.changes import Callout, changes, note
from capture.knowing import action_words
from capture.links import turn_anchor
from capture.parts import KnewPart, PromptPart, SentPart, Setting, TurnParts
from capture.reading import Hand, TurnView
from capture.stripes import stripes
from capture.turns import Turn

# All responses of a hand together may take this much of its page (PF-4: 250 KB for forty turns of about 5 KB).
RESPONSES_BYTES = 20_000
LEAST_INLINE_BYTES = 400
NOTE_WORDS: dict[str, str] = {TurnNote.RECONNECTED: "RECONNECTED?", TurnNote.LOG_GAP: "LOG GAP"}


@dataclass(frozen=True)
class AgentMark:
    """An agent of this hand: its name (with its id where two share a name) and its stripe."""

    id: str
    name: str
    stripe: int
    turns: int
    captured: int
    kept: int
    net: int | None  # chips won or lost in the hand; None: not known

    @property
    def to_keep(self) -> int:
        return self.captured - self.kept


@dataclass(frozen=True, repr=False)
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
    callouts: list[Callout] = field(default_factory=list)
    absence: str = ""
    dim: str = ""
    knew: KnewPart | None = None
    prompt: PromptPart | None = None
    response: TextBlock | None = None
    reasoning: TextBlock | None = None
    sent: SentPart | None = None

    @property
    def clamped(self) -> bool:
        """In the agent's own word, which the ledger keeps when the record is gone, or by both amounts."""
        by_amounts = any(callout.kind == "changed" for callout in self.callouts)
        return by_amounts or self.view.change == ChoiceChange.CLAMP

    @property
    def words(self) -> list[str]:
        """Its notes in a word each; one that the ledger has stays when the record that shows it is gone."""
        noted = NOTE_WORDS.get(self.view.note or "", "")
        return list(dict.fromkeys(word for word in [*(one.word for one in self.callouts), noted] if word))

    @property
    def lost(self) -> bool:
        return self.view.turn is None and self.view.capture_outcome in LOST

    @property
    def damaged(self) -> bool:
        return wording.is_damaged(self.view)

    @property
    def unusual(self) -> bool:
        return bool(self.clamped or self.words or self.lost or self.damaged or self.view.is_fallback)

    @property
    def found(self) -> int:
        """How many of its parts a search marks."""
        texts = [self.response, self.reasoning, self.prompt.block if self.prompt else None]
        return (
            sum(block.found for block in texts if block)
            + bool(self.knew and self.knew.found)
            + bool(self.sent and any(contains(message, self.sent.find) for message in self.sent.messages))
        )


@dataclass(frozen=True, repr=False)
class HandPanel:
    """A hand: who played, what became of its turns, the stream, and why it is empty where it is."""

    table_id: str
    hand_number: int
    agents: list[AgentMark]
    turns: list[TurnPanel]
    counts: list[str]
    losses: str
    empty: str
    kept: str
    remaining: str
    played_at: datetime | None
    buffer_answered: bool
    lists_whole: bool
    find: str
    idle: list[tuple[str, int]]  # names of those who were dealt in and had no turn, with the chips they won or lost
    is_over: bool  # somebody was told what the hand came to

    @property
    def title(self) -> str:
        return f"{self.table_id}:{self.hand_number}"

    @property
    def found(self) -> int:
        return sum(panel.found for panel in self.turns)

    @property
    def found_in(self) -> list[TurnPanel]:
        """The turns that a search marks."""
        return [panel for panel in self.turns if panel.found]

    @property
    def keepable(self) -> list[AgentMark]:
        """The agents with recorded turns that are not kept yet."""
        return [agent for agent in self.agents if agent.to_keep > 0]

    @property
    def keepers(self) -> list[AgentMark]:
        """The agents with kept turns."""
        return [agent for agent in self.agents if agent.kept]

    @property
    def has_prompts(self) -> bool:
        return any(panel.prompt for panel in self.turns)


def present_hand(hand: Hand, setting: Setting) -> HandPanel:
    agents = agent_marks(hand, setting)
    played = [view.played_at for view in hand.turns if view.played_at is not None]
    return HandPanel(
        hand.table_id,
        hand.hand_number,
        list(agents.values()),
        _panels(hand, agents, setting),
        wording.outcome_counts(hand.turns, buffer_answered=hand.buffer_answered),
        wording.losses(hand.turns),
        wording.empty_hand(hand, now=setting.now, ttl=setting.ttl),
        wording.kept(hand.turns),
        wording.remaining(hand, now=setting.now, ttl=setting.ttl),
        min(played, default=None),
        hand.buffer_answered,
        hand.lists_whole,
        setting.find,
        [(setting.names.get(agent_id, agent_id), net) for agent_id, net in hand.net.items() if agent_id not in agents],
        bool(hand.net),
    )


def agent_marks(hand: Hand, setting: Setting) -> dict[str, AgentMark]:
    """The hand's agents by id, in the order of their ids. Whoever else is seated has a stripe of theirs as well, so
    that nobody's changes when one of them has a turn."""
    ids = sorted({view.agent_id for view in hand.turns})
    shown = [setting.names.get(agent_id, agent_id) for agent_id in ids]
    colours = stripes(setting.seated.union(ids))
    marks = {}
    for agent_id, name in zip(ids, shown, strict=True):
        own = [view for view in hand.turns if view.agent_id == agent_id]
        marks[agent_id] = AgentMark(
            agent_id,
            name if shown.count(name) == 1 else f"{name} ({agent_id})",
            colours[agent_id],
            len(own),
            sum(view.turn is not None for view in own),
            sum(view.kept for view in own),
            hand.net.get(agent_id),
        )
    return marks


def present_turn(hand: Hand, view: TurnView, setting: Setting) -> TurnPanel:
    """One turn of the hand, for the page of a part. Raises ValueError where the view is none of the hand's."""
    return _panels(hand, agent_marks(hand, setting), setting)[hand.turns.index(view)]


def _panels(hand: Hand, agents: Mapping[str, AgentMark], setting: Setting) -> list[TurnPanel]:
    all_gone = all(view.turn is None for view in hand.turns)
    share = max(LEAST_INLINE_BYTES, RESPONSES_BYTES // max(1, len(hand.turns)))
    setting = replace(setting, inline_bytes=min(setting.inline_bytes, share))
    panels = []
    anchors: set[str] = set()
    envelopes: dict[tuple[str, str], int] = {}  # where each agent's envelope was last seen in this hand
    for view in hand.turns:
        panel = _bare(view, agents[view.agent_id], _anchor(view, anchors), setting)
        if view.turn is None:
            panels.append(replace(panel, absence=_absence(hand, view, setting, all_gone)))
            continue
        key = (view.agent_id, view.turn.prompt.envelope_hash)
        panels.append(_filled(panel, view.turn, envelopes.get(key), setting))
        envelopes[key] = view.action_index
    return panels


def _bare(view: TurnView, agent: AgentMark, anchor: str, setting: Setting) -> TurnPanel:
    """What the ledger alone can say of a turn."""
    version = view.agent_version_id
    return TurnPanel(
        view=view,
        anchor=anchor,
        name=agent.name,
        stripe=agent.stripe,
        did=action_words(view.action, view.amount) if view.action else "no action known",
        version=version.removeprefix(f"{view.agent_id}-") if version else "version unknown",
        version_url=setting.links.version(view.agent_id, version) if version else "",
    )


def _filled(panel: TurnPanel, turn: Turn, same_as: int | None, setting: Setting) -> TurnPanel:
    """The panel with the recorded things in it. `same_as`: the turn that began with the same envelope."""
    subject = f"turn {panel.view.action_index} of {panel.name}"
    parts = TurnParts(turn.key, panel.anchor, subject, setting)
    knew = parts.knew(turn)
    limits = knew.arranged.limits if knew and knew.arranged else None
    return replace(
        panel,
        callouts=[*changes(turn, limits), *map(note, setting.notes(panel.view))],
        dim=_dim(turn),
        knew=knew,
        prompt=parts.prompt(turn, same_as),
        response=parts.text("said", "Response", "response", turn.response, is_open=True),
        reasoning=parts.text("reasoned", "Reasoning", "reasoning", turn.reasoning)
        if turn.reasoning is not None
        else None,
        sent=parts.sent(turn),
    )


def _anchor(view: TurnView, taken: set[str]) -> str:
    """`t7-rocky`: two agents may share an index, and two ids may look alike once they are an anchor."""
    anchor = base = turn_anchor(view.action_index, view.agent_id)
    number = 2
    while anchor in taken:
        anchor = f"{base}.{number}"
        number += 1
    taken.add(anchor)
    return anchor


def _absence(hand: Hand, view: TurnView, setting: Setting, all_gone: bool) -> str:
    """Nothing more where the whole hand is gone: that is said once, above its turns."""
    if all_gone:
        return wording.absence_of_its_own(view)
    return wording.absence(view, now=setting.now, ttl=setting.ttl, buffer_answered=hand.buffer_answered)


def _dim(turn: Turn) -> str:
    """One line for what was not recorded: absent is not empty."""
    missing = [("What it knew", turn.knowledge), ("what it sent", turn.decision)]
    names = [name for name, value in missing if value is None]
    if not names:
        return ""
    words = " and ".join(names)
    return f"{words[0].upper()}{words[1:]} {'was' if len(names) == 1 else 'were'} not recorded for this turn."
