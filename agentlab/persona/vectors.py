"""Embeddings as int8: exact products, a quarter of a float's bytes, and the same on every processor."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from agentlab.persona.values import Invalid

LEVELS = 127
MOST = 100_000  # dimensions: beyond 133,000 a sum of products would not fit 32 bits


def quantise(vector: ArrayLike) -> bytes:
    """One embedding (d floats) as d bytes of int8, scaled so that its largest part is ±127.

    The cosine does not change with the scale, so none is kept. A zero vector stays zero. Raises `Invalid` for NaN,
    infinity, no parts, or more than one dimension: such an answer is refused where it would be written.
    """
    try:
        parts = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise Invalid("an embedding must be one row of numbers") from None
    if parts.ndim != 1 or not 0 < parts.size <= MOST:
        raise Invalid(f"an embedding must be one row of numbers, not of shape {parts.shape}")
    if not np.isfinite(parts).all():
        raise Invalid("the embedder answered NaN or infinity")
    largest = np.abs(parts).max()
    if largest == 0:
        return bytes(parts.size)
    return bytes(np.rint(parts / largest * LEVELS).astype(np.int8).tobytes())


def cosines(rows: Sequence[bytes], query: bytes) -> list[float]:
    """cos(row, query) for each row; 0.0 where either is a zero vector. All rows are as long as the query.

    Sums of products are 32-bit integers, so their order does not matter: at most 127² · d, exact below d = 133,000.
    Root and quotient are rounded correctly by every processor (IEEE 754), so that all agree to the last bit.
    """
    if not rows:
        return []
    matrix = np.frombuffer(b"".join(rows), np.int8).reshape(len(rows), len(query)).astype(np.int32)
    target = np.frombuffer(query, np.int8).astype(np.int32)
    # `@` would take twice as long: it has no fast loop for integers.
    dots, squares = np.einsum("ij,j->i", matrix, target), np.einsum("ij,ij->i", matrix, matrix)
    lengths = np.sqrt(squares.astype(np.float64) * int(target @ target))
    lengths[lengths == 0.0] = np.inf
    found: list[float] = (dots / lengths).tolist()
    return found


def centre(rows: Sequence[bytes]) -> bytes:
    """The direction of the rows' sum: what a summary of them points at."""
    matrix = np.frombuffer(b"".join(rows), np.int8).reshape(len(rows), -1)
    return quantise(matrix.astype(np.int32).sum(axis=0))
