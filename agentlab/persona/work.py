"""What a worker does: a stretch of one persona's turns, from bytes to bytes. It needs no database and no Django.

A job holds everything that its turns depend on, so that any worker may take it, twice if need be, and answer the same.
"""

import msgspec

from agentlab.persona.adapters import ports as ports_for
from agentlab.persona.events import Event
from agentlab.persona.ports import PortFailed, Ports
from agentlab.persona.rules import Rules
from agentlab.persona.state import Persona, PersonaState, Presentation, read_state
from agentlab.persona.turn import arrive, turn
from agentlab.persona.values import Invalid, canonical, why


class Job(msgspec.Struct, frozen=True, array_like=True):
    """`state` is empty for a persona that has not arrived yet. `expects` is the identity that the embedder must have.

    `rules` (`Rules`) and `shown` (Presentations) are MessagePack within it: many jobs share them, and so their bytes.
    """

    study: str
    rules: msgspec.Raw
    embedder: str
    expects: str
    model: str
    persona: Persona
    state: bytes
    shown: msgspec.Raw


class Done(msgspec.Struct, frozen=True, array_like=True):
    """The events of the turns that went well, the state after them, and why the next one did not ("" where all did).

    `answered` turns were decided by the model; `fallbacks` were meant for it, and decided by arithmetic.
    """

    events: tuple[Event, ...] = ()
    turns: int = 0
    turn: int = -1
    state: bytes = b""
    failure: str = ""
    answered: int = 0
    fallbacks: int = 0


def run_job(data: bytes) -> bytes:
    """A `Job`'s bytes to a `Done`'s. Whatever a turn raises is an answer: it fails its persona and nothing else."""
    job = msgspec.msgpack.decode(data, type=Job)
    events: list[Event] = []
    turns, answered, fallbacks, state, failure = 0, 0, 0, None, ""
    try:
        ports, rules = _ports(job), msgspec.msgpack.decode(job.rules, type=Rules)
        state = read_state(job.state) if job.state else _arrived(job, ports, rules, events)
        for shown in msgspec.msgpack.decode(job.shown, type=tuple[Presentation, ...]):
            outcome = turn(job.persona, shown, state, ports, rules)
            events += outcome.events
            state, turns = outcome.state, turns + 1
            if outcome.reaction:
                answered += outcome.reaction.tier == "B"
                fallbacks += bool(outcome.reaction.fallback)
    except Exception as error:
        failure = why(error)
    return canonical(
        Done(
            events=tuple(events),
            turns=turns,
            turn=state.counters.turns if state else -1,
            state=state.to_bytes() if state else b"",
            failure=failure,
            answered=answered,
            fallbacks=fallbacks,
        )
    )


def _ports(job: Job) -> Ports:
    ports = ports_for(job.embedder, job.model)
    if ports.embed.id != job.expects:
        raise PortFailed(f"this worker embeds with {ports.embed.id}, the study with {job.expects}")
    return ports


def _arrived(job: Job, ports: Ports, rules: Rules, events: list[Event]) -> PersonaState:
    outcome = arrive(job.persona, job.study, ports, rules)
    events += outcome.events
    return outcome.state


__all__ = ["Done", "Invalid", "Job", "run_job"]
