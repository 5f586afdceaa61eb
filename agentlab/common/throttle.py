"""Slowing down whoever guesses: failures are counted in Django's cache, successes never.

With the default in-memory cache every server process counts by itself, so N workers allow N times the limit;
`CACHE_URL` makes the count one. While that does not answer they count by themselves again: a cache that is away must
not keep people out, nor let guessers go on for ever.
"""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from django.core.cache import BaseCache, cache, caches
from django_redis.exceptions import ConnectionInterrupted
from redis import RedisError

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class FailureLimit:
    """At most `limit` failures in `seconds` for each thing counted; the window begins with the first."""

    name: str
    limit: int
    seconds: int

    def _key(self, parts: tuple[str, ...]) -> str:
        # A digest: a cache key must be short and plain, a user name need not be.
        return f"failures:{self.name}:{hashlib.sha256(repr(parts).encode(errors='backslashreplace')).hexdigest()}"

    def reached(self, *parts: str) -> bool:
        return _asked(lambda counts: int(counts.get(self._key(parts), 0))) >= self.limit

    def failed(self, *parts: str) -> None:
        _asked(lambda counts: self._count(counts, self._key(parts)))

    def forget(self, *parts: str) -> None:
        _asked(lambda counts: counts.delete(self._key(parts)))

    def _count(self, counts: BaseCache, key: str) -> None:
        counts.add(key, 0, self.seconds)
        try:
            counts.incr(key)
        except ValueError:  # expired between the two
            counts.set(key, 1, self.seconds)


def _asked(question: Callable[[BaseCache], T]) -> T:
    """Of the cache, or where it does not answer of what this process has counted itself."""
    try:
        return question(cache)
    except (ConnectionInterrupted, RedisError, OSError) as error:
        log.warning("the cache does not answer, failures are counted by this process alone (%s)", type(error).__name__)
        return question(caches["here"])
