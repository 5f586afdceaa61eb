"""The exact prompt, in the two parts that it is stored in: the prefix that repeats, and what is new this turn."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompt:
    """`envelope`: base prompt, strategy and skills, the same turn after turn; `remainder`: this turn's own part."""

    envelope: str
    remainder: str = ""

    @property
    def text(self) -> str:
        """Exactly what the model was sent."""
        return f"{self.envelope}\n{self.remainder}" if self.remainder else self.envelope

    @property
    def envelope_hash(self) -> str:
        """Lowercase hex sha256 of the envelope's bytes: the address it is stored under."""
        return hashlib.sha256(text_bytes(self.envelope)).hexdigest()


def text_bytes(text: str) -> bytes:
    """UTF-8 that also carries lone surrogates, which models do return. `bytes_text` gives the same text back."""
    return text.encode("utf-8", "surrogatepass")


def bytes_text(data: bytes) -> str:
    """The text that `text_bytes` made these bytes from. Raises UnicodeDecodeError (a ValueError) for other bytes."""
    return data.decode("utf-8", "surrogatepass")
