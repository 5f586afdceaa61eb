"""What an agent process asks of the database, for one agent at one table.

The ORM runs on a thread of its own, bounded in time: a database that hangs costs a turn at most a moment, and then the
agent plays on with what it knew.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import DatabaseError, connection

from agentlab.agents.models import AgentDeployment
from agentlab.hosted.context import Script
from agentlab.hosted.deciding import Deployment
from agentlab.hosted.deployments import NoSeat, heard_whispers, seat
from agentlab.hosted.memory import Whispers
from agentlab.hosted.model_adapters import Models
from agentlab.hosted.tokens import TokenIssuer

PATIENCE_SECONDS, LONG_PATIENCE_SECONDS = 0.25, 5.0
R = TypeVar("R")


def script_of(deployment: AgentDeployment) -> Script:
    """The deployment's own copy of what the version said."""
    skills = tuple((str(skill["name"]), str(skill["text"])) for skill in deployment.skills)
    return Script(deployment.base_prompt, deployment.strategy, skills)


class Desk:
    """What an agent process asks of the database, for one agent at one table."""

    def __init__(
        self,
        agent_id: str,
        table_id: str,
        *,
        issuer: TokenIssuer,
        models: Models,
        thread: ThreadPoolExecutor,
        model: str = "",
    ) -> None:
        self._agent_id, self._table_id, self._model = agent_id, table_id, model
        self._issuer, self._models, self._thread = issuer, models, thread
        self._deployments: dict[int, Deployment] = {}
        self._seated: Deployment | None = None
        self._whispers = Whispers()

    async def token(self) -> str:
        """A fresh token for the newest version's deployment; for the last one known where the database does not
        answer. Raises ConnectionError where there is no seat to have."""
        try:
            self._seated = self._keep(await self._ask(self._seat, patience=LONG_PATIENCE_SECONDS))
        except NoSeat as error:
            raise ConnectionError(str(error)) from None
        except (DatabaseError, TimeoutError):
            if self._seated is None:
                raise ConnectionError("no deployment: the database does not answer") from None
        return self._issuer.issue(
            agent_id=self._agent_id,
            deployment_id=self._seated.id,
            table_id=self._table_id,
            now_ms=time.time_ns() // 1_000_000,
        )

    async def deployment(self, deployment_id: int | None) -> Deployment:
        """The deployment that the table says plays this hand, read once; the seated one where it cannot be read."""
        assert self._seated is not None, "a turn comes after a token"
        if deployment_id is not None and deployment_id not in self._deployments:
            with contextlib.suppress(DatabaseError, TimeoutError, AgentDeployment.DoesNotExist):
                mine = AgentDeployment.objects.filter(agent_id=self._agent_id, table_id=self._table_id)
                self._keep(await self._ask(lambda: mine.get(pk=deployment_id), patience=PATIENCE_SECONDS))
        return self._deployments.get(deployment_id or 0, self._seated)

    async def whispers(self) -> Whispers:
        """The owner's latest words; those heard last where the database does not answer at once."""
        with contextlib.suppress(DatabaseError, TimeoutError):
            self._whispers = await self._ask(lambda: heard_whispers(self._agent_id), patience=PATIENCE_SECONDS)
        return self._whispers

    def _seat(self) -> AgentDeployment:
        return seat(self._agent_id, self._table_id, model=self._model)

    def _keep(self, row: AgentDeployment) -> Deployment:
        deployment = Deployment(row.pk, row.version_id, script_of(row), self._models.get(row.model))
        return self._deployments.setdefault(row.pk, deployment)

    async def _ask(self, question: Callable[[], R], *, patience: float) -> R:
        """On the database's thread. A question that takes too long goes on there, and its answer is not waited for."""
        answer = asyncio.get_running_loop().run_in_executor(self._thread, asked_of_database, question)
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        async with asyncio.timeout(patience):
            return await asyncio.shield(answer)


def asked_of_database(question: Callable[[], R]) -> R:
    """For a thread that lives long: its connection is kept while it works, and made anew after it failed."""
    try:
        return question()
    except DatabaseError:
        connection.close()
        raise
