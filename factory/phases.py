"""What a workflow is made of.

Its phases share one model session. The first message carries the task under `### prompt`; later messages do not
repeat it, since the session holds it.
"""

from dataclasses import dataclass

import msgspec


class Envelope(msgspec.Struct):
    """What a phase answers: JSON of a checked form, handed to the phase after it."""

    def objection(self) -> str | None:
        """Why the run cannot succeed although the phase was carried out."""
        return None


@dataclass(frozen=True, slots=True)
class Phase:
    """One step: what the agent is told to do, the form of its reply, and whether the check must pass after it."""

    name: str
    instruction: str
    envelope: type[Envelope]
    example: str
    gated: bool = False


@dataclass(frozen=True, slots=True)
class Workflow:
    name: str
    system: str
    phases: tuple[Phase, ...]
