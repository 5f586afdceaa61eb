"""Slowing down whoever guesses: failures are counted in Django's cache, successes never.

With the default in-memory cache every server process counts by itself, so N workers allow N times the limit;
`CACHE_URL` makes the count one.
"""

import hashlib
from dataclasses import dataclass

from django.core.cache import cache


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
        return int(cache.get(self._key(parts), 0)) >= self.limit

    def failed(self, *parts: str) -> None:
        key = self._key(parts)
        cache.add(key, 0, self.seconds)
        try:
            cache.incr(key)
        except ValueError:  # expired between the two
            cache.set(key, 1, self.seconds)

    def forget(self, *parts: str) -> None:
        cache.delete(self._key(parts))
