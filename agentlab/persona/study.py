"""A study: one file, validated as a whole before anything runs. Its SHA-256 is what ids, draws and hashes call *study*.

`read_study` turns YAML or JSON into a `Study` with every persona and stimulus loaded and every default filled in, so
that the same content in another spelling is the same study. Each refusal is one line that names the place.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from agentlab.persona.loaders import load_personas, load_stimuli, tinytroupe
from agentlab.persona.loaders.reading import parsed
from agentlab.persona.refusing import SHOWN, one_line, refusal
from agentlab.persona.rules import KNOWN_ACTIONS, Action, Ask, Rules
from agentlab.persona.state import Persona, Presentation, Scalar, SeedMemory, beliefs_from
from agentlab.persona.values import UNREADABLE, Invalid, canonical, cut, draw, sha256

UNSURE = (0.0, 0.1)  # stance and confidence on a topic of which nothing is known
DAY = 1_000_000  # turns of one persona at most

PLAIN = r"^[^\x00-\x1f\x7f]+\Z"  # `$` would let a newline follow
WORD = r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z"
SHAPES = {
    repr(PLAIN): "in one line, without control characters",
    repr(WORD): "of letters, digits, `_`, `.` and `-` that begins with a letter or a digit",
}
Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=PLAIN)]
Id = Annotated[str, Meta(min_length=1, max_length=100, pattern=WORD)]
Port = Annotated[str, Meta(min_length=1, max_length=150, pattern=PLAIN)]
Text = Annotated[str, Meta(min_length=1, max_length=20_000)]
Source = Annotated[str, Meta(max_length=200)]
Signed = Annotated[float, Meta(ge=-1, le=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Above = Annotated[float, Meta(gt=0, le=1e9)]  # times of a million turns stay numbers
Count = Annotated[int, Meta(ge=0, le=10**12)]
Whole = Annotated[int, Meta(ge=1, le=10**9)]
ACTION = re.compile(r"[^\x00-\x1f\x7f,]{1,60}")  # names stand in one line of a prompt, apart by commas


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of the file: an unknown key is a slip of the pen, and refused."""


class BeliefEntry(_Part, frozen=True):
    stance: Signed
    confidence: Share = 0.5


class MemoryEntry(_Part, frozen=True):
    text: Text
    importance: Share = 0.5
    time: Annotated[float, Meta(ge=-1e12, le=0)] = 0.0
    valence: Signed = 0.0


class PersonaEntry(_Part, frozen=True):
    id: Id
    name: Name | UnsetType = UNSET
    profile: dict[Name, Scalar | list[str]] = {}
    beliefs: dict[Name, Signed | BeliefEntry] = {}
    trust: dict[Source, Share] = {}
    memories: list[Text | MemoryEntry] = []


class PersonaLoad(_Part, frozen=True):
    """Personas of another file (paths are relative to the study file); `fragments` for one TinyTroupe agent."""

    load: str
    format: Literal["own", "gss", "oasis", "town", "smallville", "tinytroupe"] = "own"
    limit: Whole | None = None
    fragments: list[str] = []


class StimulusEntry(_Part, frozen=True):
    text: Text
    id: Id | UnsetType = UNSET
    source: Source = ""
    position: Whole = 1
    social_proof: Count = 0
    stances: dict[Name, Signed] = {}


class StimulusLoad(_Part, frozen=True):
    """Stimuli of a file; `source`, `position`, `social_proof` and `stances` are then those of each of them."""

    load: str
    limit: Whole | None = None
    source: Source = ""
    position: Whole = 1
    social_proof: Count = 0
    stances: dict[Name, Signed] = {}


class ReadingEntry(_Part, frozen=True):
    """A first belief read out of a profile's field: {text of the field: stance}."""

    field: Name
    values: dict[str, Signed]
    confidence: Share = 0.5


class ScheduleEntry(_Part, frozen=True):
    """`turns` presentations a persona (each stimulus once, where not given), `step` of study time apart, in the order
    listed or shuffled for each persona."""

    turns: Annotated[int, Meta(ge=1, le=DAY)] | None = None
    step: Above = 1.0
    order: Literal["listed", "shuffled"] = "listed"


class ReflectionEntry(_Part, frozen=True):
    batch: Annotated[int, Meta(ge=2)] = 8
    at: Above = 15.0


class TierEntry(_Part, frozen=True):
    """The model of tier B, the arousal from which it is asked, and for how many reactions in the whole study at most
    (probes ask it beside that)."""

    budget: Count
    model: Port = "rules"
    above: Share = 0.6


class ProbesEntry(_Part, frozen=True):
    every: Whole
    fields: list[Name] = []
    opinions: list[Name] = []
    drift_above: Share = 0.3


class StudyFile(_Part, frozen=True):
    name: Name
    personas: list[dict[str, Any]] | dict[str, Any]
    stimuli: list[dict[str, Any]] | dict[str, Any]
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] = 0
    topics: list[Name] = []
    actions: tuple[str | Action, ...] = ("ignore", "like", "share", "reply")
    cap: Annotated[int, Meta(ge=2, le=10_000)] = 64
    k: Annotated[int, Meta(ge=0, le=1_000)] = 8
    tau: Above = 20.0
    reflection: ReflectionEntry = ReflectionEntry()
    rate: Share = 0.3
    tolerance: Annotated[float, Meta(ge=0, le=2)] = 1.0
    temperature: Annotated[float, Meta(ge=1e-6, le=1e9)] = 0.25
    embedder: Port = "hashing"
    tier_b: TierEntry | None = None
    schedule: ScheduleEntry = ScheduleEntry()
    probes: ProbesEntry | None = None
    first_beliefs: dict[Name, ReadingEntry] = {}


class Stimulus(msgspec.Struct, frozen=True):
    id: str
    text: str
    source: str
    position: int
    social_proof: int
    stances: dict[str, float]


class StudyHead(msgspec.Struct, frozen=True):
    """What a page needs of a study."""

    seed: int
    rules: Rules
    budget: int

    def calls(self, number: int, personas: int) -> int:
        """The persona's share of the budget."""
        return shared_out(self.budget, personas, number)


class Study(msgspec.Struct, frozen=True, dict=True):
    """The validated study. `personas` hold their share of the model's `budget`."""

    name: str
    seed: int
    rules: Rules
    personas: tuple[Persona, ...]
    stimuli: tuple[Stimulus, ...]
    turns: int
    step: float
    order: str
    embedder: str
    model: str
    budget: int

    def to_bytes(self) -> bytes:
        return canonical(self)

    @cached_property
    def sha256(self) -> str:
        return sha256(self.to_bytes())

    @cached_property
    def rules_bytes(self) -> bytes:
        return canonical(self.rules)

    @property
    def probe_calls(self) -> int:
        """How often probes ask the model in the whole study: beside the budget, which is for reactions."""
        if not self.model or not self.rules.probe_every:
            return 0
        asks = [(ask, one) for one in self.personas for ask in self.rules.probe_ask]
        apply = sum(bool(ask.topic) or ask.field in one.profile for ask, one in asks)
        return self.turns // self.rules.probe_every * apply

    def shown_bytes(self, persona: str, first: int, last: int) -> bytes:
        """What one persona is shown, as MessagePack; in the listed order it is the same for all, and made once."""
        if self.order == "listed":
            return self._listed_bytes(first, last)
        return canonical(self.shown(persona, first, last))

    @cached_property
    def _listed_bytes(self) -> Callable[[int, int], bytes]:
        return lru_cache(maxsize=4)(lambda first, last: canonical(self.shown("", first, last)))

    def shown(self, persona: str, first: int, last: int) -> tuple[Presentation, ...]:
        """What one persona is shown in turns first…last (both counted from 1). Turn t is at time t · step."""
        if self.order == "listed":
            return tuple(self._presentation(turn, self._place(turn)) for turn in range(first, last + 1))
        orders = {round: self._shuffled(persona, round) for round in range(self._round(first), self._round(last) + 1)}
        return tuple(
            self._presentation(turn, orders[self._round(turn)][self._place(turn)]) for turn in range(first, last + 1)
        )

    def _round(self, turn: int) -> int:
        return (turn - 1) // len(self.stimuli)

    def _place(self, turn: int) -> int:
        return (turn - 1) % len(self.stimuli)

    def _presentation(self, turn: int, index: int) -> Presentation:
        one = self.stimuli[index]
        return Presentation(
            turn, turn * self.step, one.id, one.text, one.source, one.position, one.social_proof, one.stances
        )

    def _shuffled(self, persona: str, round: int) -> list[int]:
        return sorted(range(len(self.stimuli)), key=lambda i: (draw(self.sha256, "order", persona, round, i), i))


def study_from(data: bytes) -> Study:
    """The study that `Study.to_bytes` wrote. Its name stays the hash of those very bytes: an engine that has learnt a
    new key since would write others, and shuffle the rest of the study differently. Raises `Invalid`."""
    try:
        study = msgspec.msgpack.decode(data, type=Study)
    except UNREADABLE as error:
        raise Invalid(f"not a study: {error}") from None
    study.__dict__["sha256"] = sha256(data)
    return study


def read_study(path: Path) -> Study:
    """The study in a YAML or JSON file. Raises `Invalid`."""
    whole = parsed(path)
    if not isinstance(whole, dict):
        raise Invalid(f"{path}: a study is a mapping with name, personas and stimuli")
    file = _part(whole, StudyFile, str(path), "")
    try:
        return _study(file, path.parent)
    except Invalid as error:
        raise Invalid(f"{path}: {error}") from None


def _study(file: StudyFile, folder: Path) -> Study:
    _unique(file.topics, "topics")
    _known(file.topics, file.first_beliefs, "first_beliefs")
    actions = _actions(file.actions)
    personas = _personas(file, folder)
    stimuli = _stimuli(file, folder)
    tier, probes = file.tier_b, file.probes or ProbesEntry(every=1)
    if file.probes:
        _askable(probes, file.topics, personas)
    return Study(
        name=file.name,
        seed=file.seed,
        rules=Rules(
            actions=actions,
            topics=tuple(file.topics),
            cap=file.cap,
            k=file.k,
            tau=file.tau,
            batch=min(file.reflection.batch, file.cap),
            reflect_at=file.reflection.at,
            rate=file.rate,
            tolerance=file.tolerance,
            temperature=file.temperature,
            model_above=tier.above if tier else 0.0,
            probe_every=probes.every if file.probes else 0,
            probe_ask=tuple(
                [Ask(field=name) for name in probes.fields] + [Ask(topic=name) for name in probes.opinions]
            ),
            drift_above=probes.drift_above,
        ),
        personas=_with_calls(personas, tier.budget if tier else 0),
        stimuli=stimuli,
        turns=file.schedule.turns or len(stimuli),
        step=file.schedule.step,
        order=file.schedule.order,
        embedder=file.embedder,
        model=tier.model if tier else "",
        budget=tier.budget if tier else 0,
    )


def _askable(probes: ProbesEntry, topics: list[str], personas: list[Persona]) -> None:
    """Refuse probes that would ask nobody."""
    _unique(probes.fields, "probes.fields")
    _unique(probes.opinions, "probes.opinions")
    _known(topics, probes.opinions, "probes.opinions")
    if not probes.fields and not probes.opinions:
        raise Invalid("probes: neither fields nor opinions, so there is nothing to ask")
    fields = {field for one in personas for field in one.profile}
    for name in probes.fields:
        if name not in fields:
            raise Invalid(f"probes.fields: {name!r} is in no persona's profile")


def _with_calls(personas: list[Persona], budget: int) -> tuple[Persona, ...]:
    count = len(personas)
    return tuple(msgspec.structs.replace(one, calls=shared_out(budget, count, n)) for n, one in enumerate(personas))


def shared_out(budget: int, count: int, number: int) -> int:
    """One of `count` shares of the budget: as even as whole calls allow, one more for the first."""
    each, over = divmod(budget, count)
    return each + (number < over)


def _actions(given: tuple[str | Action, ...]) -> tuple[Action, ...]:
    actions = []
    for n, one in enumerate(given):
        if isinstance(one, str) and one not in KNOWN_ACTIONS:
            known = ", ".join(KNOWN_ACTIONS)
            raise Invalid(f"actions[{n}]: {one!r} is none of {known}; any other needs name, valence and effort")
        action = KNOWN_ACTIONS[one] if isinstance(one, str) else one
        named = ACTION.fullmatch(action.name) and action.name.strip() == action.name.lower()
        if not (named and -1 <= action.valence <= 1 and 0 <= action.effort <= 1):
            raise Invalid(
                f"actions[{n}]: a lower-case name of at most 60 characters without a comma, valence in [-1, 1], "
                "effort in [0, 1]"
            )
        actions.append(action)
    _unique([action.name for action in actions], "actions")
    if len(actions) < 2:
        raise Invalid("actions: at least two, or there is nothing to choose")
    return tuple(actions)


def _personas(file: StudyFile, folder: Path) -> list[Persona]:
    made = []
    for n, given in enumerate(_listed(file.personas)):
        place = f"personas[{n}]"
        if "load" in given:
            load = _part(given, PersonaLoad, "", place)
            made += [_persona(entry, f"{place}: {where}", file) for where, entry in _loaded(load, folder)]
        else:
            made.append(_persona(given, place, file))
    if not made:
        raise Invalid("personas: at least one")
    _unique([one.id for one in made], "personas")
    return made


def _loaded(load: PersonaLoad, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    path = folder / load.load
    if not load.fragments:
        return load_personas(load.format, path, load.limit)
    if load.format != "tinytroupe":
        raise Invalid(f"{load.load}: fragments are for TinyTroupe agents")
    return [(path.name, tinytroupe.merged(path, [folder / one for one in load.fragments]))]


def _persona(given: dict[str, Any], place: str, file: StudyFile) -> Persona:
    entry = _part(given, PersonaEntry, "", place)
    _known(file.topics, entry.beliefs, f"{place}.beliefs")
    for field, value in entry.profile.items():
        if isinstance(value, int | float) and not -(2**63) <= value < 2**63:  # NaN is in no range
            raise Invalid(f"{place}.profile[{field}] ({entry.id}): not a number that can be written")
    held = {topic: _first_belief(topic, entry, file) for topic in file.topics}
    memories = [MemoryEntry(one) if isinstance(one, str) else one for one in entry.memories]
    return Persona(
        id=entry.id,
        name=entry.id if entry.name is UNSET else entry.name,
        profile=entry.profile,
        beliefs=beliefs_from(held),
        trust=entry.trust,
        memories=tuple(SeedMemory(m.text, m.importance, m.time, m.valence) for m in memories),
    )


def _first_belief(topic: str, entry: PersonaEntry, file: StudyFile) -> tuple[float, float]:
    """The persona's own, else what its profile tells, else unsure."""
    own = entry.beliefs.get(topic)
    if isinstance(own, BeliefEntry):
        return own.stance, own.confidence
    if own is not None:
        return own, BeliefEntry(own).confidence
    reading = file.first_beliefs.get(topic)
    told = reading.values.get(str(entry.profile.get(reading.field))) if reading else None
    return UNSURE if reading is None or told is None else (told, reading.confidence)


def _stimuli(file: StudyFile, folder: Path) -> tuple[Stimulus, ...]:
    made: list[Stimulus] = []
    for n, given in enumerate(_listed(file.stimuli)):
        place = f"stimuli[{n}]"
        if "load" in given:
            load = _part(given, StimulusLoad, "", place)
            shared = {key: value for key, value in given.items() if key not in ("load", "limit")}
            found = [(f"{place}: {at}", {**shared, **e}) for at, e in load_stimuli(folder / load.load, load.limit)]
        else:
            found = [(place, given)]
        for at, entry in found:
            made.append(_stimulus(_part(entry, StimulusEntry, "", at), at, len(made) + 1, file.topics))
    if not made:
        raise Invalid("stimuli: at least one")
    _unique([one.id for one in made], "stimuli")
    return tuple(made)


def _stimulus(entry: StimulusEntry, place: str, number: int, topics: list[str]) -> Stimulus:
    _known(topics, entry.stances, f"{place}.stances")
    id = f"s{number}" if entry.id is UNSET else entry.id
    return Stimulus(id, entry.text, entry.source, entry.position, entry.social_proof, entry.stances)


def _listed(given: list[dict[str, Any]] | dict[str, Any]) -> list[dict[str, Any]]:
    return given if isinstance(given, list) else [given]


P = TypeVar("P", bound=_Part)


def _part(given: dict[str, Any], kind: type[P], path: str, place: str) -> P:
    """One mapping of the file as what it should be. Raises `Invalid` with the place and, for an entry, its id."""
    try:
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, Invalid) as error:
        message, where = refusal(given, kind, error, SHAPES)
        named = f" ({cut(one_line(given['id']), SHOWN)})" if isinstance(given.get("id"), str) else ""
        where = (place + where).lstrip(".") + named or "at the top level"
        raise Invalid(": ".join(part for part in (path, one_line(where), one_line(message)) if part)) from None


def _unique(names: list[str], place: str) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise Invalid(f"{place}: {twice[0]} is there twice")


def _known(topics: list[str], named: Any, place: str) -> None:
    for topic in named:
        if topic not in topics:
            raise Invalid(f"{place}: {topic!r} is not among the study's topics")
