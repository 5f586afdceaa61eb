"""What a turn asks of the world outside: the embedding of a text and, on tier B, a model's answer.

Adapters live in `adapters/`. Their identity goes into the study, so that no state is ever ranked with vectors of
another embedder. Whatever an adapter speaks to, it answers plain values: an array of floats, a string.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class PortFailed(Exception):
    """The far side gave no usable answer; the message says why in one line, without content."""


class EmbedPort(Protocol):
    """Texts to vectors. The same text gives the same vector; the empty text gives a zero vector."""

    @property
    def id(self) -> str:
        """Names model and dimensions: two embedders with one id give equal vectors."""

    def embed(self, texts: list[str]) -> NDArray[np.floating]:
        """Shape (texts, dimensions). Raises `PortFailed`."""


class CompletionPort(Protocol):
    """One prompt in, one raw completion out."""

    @property
    def id(self) -> str: ...

    def complete(self, prompt: str) -> str:
        """Raises `PortFailed` where there is no answer."""


@dataclass(frozen=True)
class Ports:
    """`complete` is None in a study without a model: then every turn is tier A."""

    embed: EmbedPort
    complete: CompletionPort | None = None
