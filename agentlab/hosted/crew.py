"""The hosted agents of one process, and what they share: the recorder, the ledger's writer, the models, a database
thread, and the count of what happened."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
from django.conf import settings
from django.db import connections
from django_redis import get_redis_connection

from agentlab.agents.ledger import LedgerWriter
from agentlab.hosted.agent import HostedAgent, Tally
from agentlab.hosted.desk import Desk
from agentlab.hosted.model_adapters import Models
from agentlab.hosted.tokens import TokenIssuer
from capture.buffer import TurnBuffer
from capture.recorder import TurnRecorder
from capture.turns import TurnKey

CLOSE_SECONDS = 2.0
"""How long the end waits for a store that does not answer; the ledger's rows wait in their spool for the next start."""


class CrewReport(msgspec.Struct, kw_only=True):
    """Counts over a crew's life; captured + dropped + failed = turns - fallbacks."""

    turns: int = 0
    fallbacks: int = 0
    captured: int = 0
    dropped: int = 0
    failed: int = 0
    clamped: int = 0
    envelopes: set[str] = msgspec.field(default_factory=set)
    ledger_complete: bool = True

    def add(self, other: "CrewReport") -> None:
        self.turns += other.turns
        self.fallbacks += other.fallbacks
        self.captured += other.captured
        self.dropped += other.dropped
        self.failed += other.failed
        self.clamped += other.clamped
        self.envelopes |= other.envelopes
        self.ledger_complete &= other.ledger_complete


class Crew:
    """Agents that share one process. `play` them at as many tables as wanted, then `close`."""

    def __init__(self, *, issuer: TokenIssuer, model: str = "", seed: int = 0, min_turn_ms: int = 0) -> None:
        """Raises ValueError for a `model` that cannot be opened, SpoolError where the ledger's spool cannot."""
        self.tally = Tally()
        self._models = Models(seed=seed, base_url=settings.OPENAI_BASE_URL, api_key=settings.OPENAI_API_KEY)
        if model:
            self._models.open(model)
        self._issuer, self._model, self._min_turn_ms = issuer, model, min_turn_ms
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="agent-database")
        self._ledger = LedgerWriter(settings.AGENT_LEDGER_SPOOL)
        buffer = TurnBuffer(get_redis_connection("capture"), ttl_seconds=settings.CAPTURE_TTL_SECONDS)
        self._recorder = TurnRecorder(buffer, on_outcome=self._outcome)

    def agent(self, agent_id: str, table_id: str, url: str) -> HostedAgent:
        """One seat; its `run` plays until it is cancelled."""
        desk = Desk(
            agent_id, table_id, issuer=self._issuer, models=self._models, thread=self._thread, model=self._model
        )
        return HostedAgent(
            agent_id,
            table_id,
            url,
            desk=desk,
            recorder=self._recorder,
            ledger=self._ledger,
            min_turn_ms=self._min_turn_ms,
            tally=self.tally,
        )

    def _outcome(self, key: TurnKey, outcome: str, reason: str) -> None:
        self._ledger.outcome(
            agent_id=key.agent_id,
            table_id=key.table_id,
            hand_number=key.hand_number,
            action_index=key.action_index,
            outcome=outcome,
            reason=reason,
        )

    async def close(self) -> CrewReport:
        """Writes what waits, a moment long, and says what became of it all."""
        await asyncio.to_thread(self._recorder.close, CLOSE_SECONDS)
        complete = await asyncio.to_thread(self._ledger.close, CLOSE_SECONDS)
        await self._models.close()
        self._thread.submit(connections.close_all)
        self._thread.shutdown(wait=False)
        stats = self._recorder.stats
        return CrewReport(
            turns=self.tally.turns,
            fallbacks=self.tally.fallbacks,
            captured=stats.written,
            dropped=stats.dropped,
            failed=stats.failed,
            clamped=self.tally.clamped,
            envelopes=self.tally.envelopes,
            ledger_complete=complete,
        )


async def end(tasks: "list[asyncio.Task[Any]]") -> None:
    """Cancels agents' tasks and waits until each has recorded what it had sent."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
