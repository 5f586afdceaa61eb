"""Hands from here or from another host, behind one port: pages and proxy never know which.

`HOSTED_AGENT_URL` names the host that has the buffer, the ledger and the kept rows; without it they are ours.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import httpx2
import msgspec
from django.conf import settings
from django.db import InterfaceError, OperationalError

from agentlab.common.access import User
from agentlab.common.models import Deed
from capture import pinning, reading, recent, wire
from capture.buffer import BufferUnavailable
from capture.pinning import PinResult
from capture.reading import Hand
from capture.recent import AgentDay, Neighbours, RecentHands
from capture.wording import silent

J = TypeVar("J", bound=msgspec.Struct)
# A hand of nine agents and forty turns is about half a megabyte; forty prompts of a megabyte each still come through.
LARGEST_ANSWER = 64 * 1024**2
SECONDS_TO_CONNECT = 2.0
SECONDS_TO_READ = 5.0  # between two pieces
SECONDS_IN_ALL = 15.0
NOT_A_HAND = "The hosted agent's answer cannot be read; is it another version?"


class SourceError(Exception):
    """No answer, in one sentence for the person who asked. `status` is the HTTP status that says the same."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


class HandSource(Protocol):
    """Where hands come from. Every method raises SourceError where there is no answer, ValueError for ids that
    there cannot be. `actor` stands in the audit."""

    def read_hand(self, table_id: str, hand_number: int, *, agent_id: str) -> Hand: ...

    def read_hand_all(self, table_id: str, hand_number: int) -> Hand: ...

    def recent_hands(
        self,
        before: str | None = None,
        limit: int = 25,
        agent_ids: Sequence[str] | None = None,
        *,
        kept: bool = False,
        only: str = "",
    ) -> RecentHands: ...

    def neighbours(self, table_id: str, hand_number: int, *, agent_id: str) -> Neighbours: ...

    def neighbours_all(self, table_id: str, hand_number: int) -> Neighbours: ...

    def last_day(self, agent_ids: Sequence[str]) -> dict[str, AgentDay]: ...

    def pin(self, table_id: str, hand_number: int, *, agent_id: str, actor: User | None) -> PinResult: ...

    def unpin(self, table_id: str, hand_number: int, *, agent_id: str, actor: User | None) -> int: ...

    def silence(self) -> str:
        """What is wrong with the capture store right now, in a sentence; "" where it answers, or it is not known."""
        ...


def hand_source() -> HandSource:
    if settings.HOSTED_AGENT_URL:
        return RemoteHands(settings.HOSTED_AGENT_URL, settings.AGENT_CAPTURE_SERVICE_KEY)
    return LocalHands()


class LocalHands:
    """Our own stores."""

    read_hand = staticmethod(reading.read_hand)
    read_hand_all = staticmethod(reading.read_hand_all)
    recent_hands = staticmethod(recent.recent_hands)
    neighbours = staticmethod(recent.neighbours)
    neighbours_all = staticmethod(reading.neighbours_all)
    last_day = staticmethod(recent.last_day)
    unpin = staticmethod(pinning.unpin)

    def silence(self) -> str:
        try:
            reading.hot_buffer().ping()
        except BufferUnavailable as error:
            return silent(str(error))
        return ""

    def pin(self, table_id: str, hand_number: int, *, agent_id: str, actor: User | None) -> PinResult:
        try:
            return pinning.pin(table_id, hand_number, agent_id=agent_id, actor=actor)
        except BufferUnavailable as error:
            raise SourceError(f"Nothing could be kept: {error}. Try again in a moment.", 503) from None
        except (OperationalError, InterfaceError):
            raise SourceError(
                "The database went away, so it is not known whether the hand was kept. Keeping it again is safe.", 503
            ) from None


@lru_cache(maxsize=2)
def _client(url: str, key: str) -> httpx2.Client:
    """One client a host and process: its connections are kept, no proxy of the environment gets to see the key, and no
    redirect is followed, which could carry the key elsewhere."""
    return httpx2.Client(
        base_url=url.rstrip("/") + "/internal/agent-capture/",
        headers={b"x-service-key": key.encode(), b"accept": b"application/json", b"accept-encoding": b"identity"},
        timeout=httpx2.Timeout(SECONDS_TO_READ, connect=SECONDS_TO_CONNECT),
        follow_redirects=False,
        trust_env=False,
    )


class RemoteHands:
    """Another host's stores, through its internal API."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key

    def read_hand(self, table_id: str, hand_number: int, *, agent_id: str) -> Hand:
        scope = _scope(table_id, hand_number, agent_id)
        return self._hand(self._ask("GET", "hand", wire.HandJson, params=scope))

    def read_hand_all(self, table_id: str, hand_number: int) -> Hand:
        return self._hand(self._ask("GET", "hand-all", wire.HandJson, params=_scope(table_id, hand_number)))

    def recent_hands(
        self,
        before: str | None = None,
        limit: int = 25,
        agent_ids: Sequence[str] | None = None,
        *,
        kept: bool = False,
        only: str = "",
    ) -> RecentHands:
        if agent_ids is not None and not agent_ids:
            return RecentHands([], None)
        query: dict[str, Any] = {"limit": limit, "kept": "true" if kept else "false"}
        query |= {"before": before} if before else {}
        query |= {"only": only} if only else {}
        query |= {"agentId": list(agent_ids)} if agent_ids is not None else {}
        found = wire.recent_from_json(self._ask("GET", "hands", wire.RecentHandsJson, params=query))
        # A host of an older version passes over `only`.
        return replace(found, hands=[hand for hand in found.hands if hand.has(only)]) if only in recent.ONLY else found

    def neighbours(self, table_id: str, hand_number: int, *, agent_id: str) -> Neighbours:
        scope = _scope(table_id, hand_number, agent_id)
        return wire.neighbours_from_json(self._ask("GET", "neighbours", wire.NeighboursJson, params=scope))

    def neighbours_all(self, table_id: str, hand_number: int) -> Neighbours:
        scope = _scope(table_id, hand_number)
        return wire.neighbours_from_json(self._ask("GET", "neighbours-all", wire.NeighboursJson, params=scope))

    def last_day(self, agent_ids: Sequence[str]) -> dict[str, AgentDay]:
        if not agent_ids:
            return {}
        answer = self._ask("GET", "today", wire.AgentDaysJson, params={"agentId": list(agent_ids)})
        return dict.fromkeys(agent_ids, AgentDay()) | wire.days_from_json(answer)

    def pin(self, table_id: str, hand_number: int, *, agent_id: str, actor: User | None) -> PinResult:
        answer = self._ask("POST", "promote", wire.PinJson, json=_scope(table_id, hand_number, agent_id))
        if answer.pinned:
            pinning.audit_turns(actor, Deed.KEPT, table_id, hand_number, agent_id, answer.pinned)
        return wire.pin_from_json(answer)

    def unpin(self, table_id: str, hand_number: int, *, agent_id: str, actor: User | None) -> int:
        removed = self._ask("POST", "unpin", wire.UnpinJson, json=_scope(table_id, hand_number, agent_id)).removed
        if removed:
            pinning.audit_turns(actor, Deed.UNKEPT, table_id, hand_number, agent_id, removed)
        return removed

    def silence(self) -> str:
        """By what that host says of itself to anybody. Where it does not say, its list was had all the same."""
        try:
            said = json.loads(self._fetch("GET", f"{self._url.rstrip('/')}/healthz", {})[1])
        except (SourceError, ValueError, RecursionError):
            return ""
        return silent("Redis is down") if isinstance(said, dict) and said.get("captureRedis") == "down" else ""

    @staticmethod
    def _hand(answer: wire.HandJson) -> Hand:
        try:
            return wire.hand_from_json(answer)
        except (ValueError, TypeError):
            raise SourceError(NOT_A_HAND) from None

    def _ask(self, method: str, path: str, kind: type[J], **sent: Any) -> J:
        """The answer to one request, as its struct."""
        status, body = self._fetch(method, path, sent)
        try:
            data = json.loads(body)
            if status == 200:
                return msgspec.convert(data, kind)
        except (ValueError, RecursionError, msgspec.MsgspecError):
            data = None
        if status == 200:
            raise SourceError(NOT_A_HAND)
        raise _refusal(status, data)

    def _fetch(self, method: str, path: str, sent: Mapping[str, Any]) -> tuple[int, bytes]:
        end = time.monotonic() + SECONDS_IN_ALL
        body = bytearray()
        try:
            with _client(self._url, self._key).stream(method, path, **sent) as answer:
                for chunk in answer.iter_raw():
                    body += chunk
                    if len(body) > LARGEST_ANSWER:
                        raise SourceError("The hosted agent's answer is too large to show.")
                    if time.monotonic() > end:
                        raise SourceError("The hosted agent answers too slowly.", 504)
                return answer.status_code, bytes(body)
        except httpx2.TimeoutException:
            raise SourceError("The hosted agent does not answer in time.", 504) from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise SourceError("The hosted agent cannot be reached.") from None


def _scope(table_id: str, hand_number: int, agent_id: str | None = None) -> dict[str, str | int]:
    """What a request is about. Raises ValueError for ids that there cannot be."""
    if agent_id is None:
        reading.check_hand(table_id, hand_number)
        return {"tableId": table_id, "handNumber": hand_number}
    reading.check_hand(table_id, hand_number, agent_id)
    return {"tableId": table_id, "handNumber": hand_number, "agentId": agent_id}


def _refusal(status: int, data: Any) -> Exception:
    """What a status other than 200 means to the person who asked."""
    if status in (401, 403):
        return SourceError("The hosted agent refused our service key.")
    if status in (400, 503):
        said = data.get("error") if isinstance(data, dict) else None
        message = said.get("message") if isinstance(said, dict) else None
        words = message[:300] if isinstance(message, str) else "The hosted agent gave no reason."
        return ValueError(words) if status == 400 else SourceError(words, 503)
    return SourceError(f"The hosted agent answered with status {status}.")
