"""The default embedder: feature hashing (Weinberger et al., 2009). No dependency, no network, no weights."""

import zlib
from functools import lru_cache
from re import compile as pattern

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 256
_WORD = pattern(r"\w+")
_GRAM = 4  # letters; word stems overlap, so "taxes" is near "tax"
# Words that nearly every English sentence has say nothing of what it is about.
_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "i",
        "if",
        "in",
        "is",
        "it",
        "its",
        "me",
        "my",
        "no",
        "not",
        "of",
        "on",
        "or",
        "our",
        "s",
        "she",
        "so",
        "some",
        "t",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "which",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)


class HashingEmbedder:
    """Signed counts of words and letter groups in 256 bins. Whole numbers, so the same on every machine."""

    id = f"hashing-1/{DIMENSIONS}"

    def embed(self, texts: list[str]) -> NDArray[np.floating]:
        return np.array([_counts(text) for text in texts], dtype=np.float32).reshape(len(texts), DIMENSIONS)


def _counts(text: str) -> list[int]:
    counts = [0] * DIMENSIONS
    for word in _WORD.findall(text.casefold()):
        if word not in _COMMON:
            for slot, weight in _features(word):
                counts[slot] += weight
    return counts


@lru_cache(maxsize=20_000)
def _features(word: str) -> tuple[tuple[int, int], ...]:
    """(bin, signed weight) of the word itself, which counts double, and of its letter groups."""
    marked = f"<{word}>"
    grams = [marked[i : i + _GRAM] for i in range(max(1, len(marked) - _GRAM + 1))]
    return (_feature(word, 2), *(_feature(gram, 1) for gram in grams if gram != marked))


def _feature(name: str, weight: int) -> tuple[int, int]:
    code = zlib.crc32(name.encode("utf-8", "backslashreplace"))
    return code % DIMENSIONS, weight if code >> 31 else -weight
