"""Hosted agents in a process of their own, and the handle by which another process holds it.

A child that dies is started again by its holder: its agents come back to their seats with empty heads.
"""

import asyncio
import contextlib
import logging
from asyncio.subprocess import Process

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentlab.hosted.children import begin, let_go, start_child

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 10.0
STOP_SECONDS = 6.0


class AgentOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Who shall play where. `private_key` is the issuer's, as hex: it goes through the pipe and nowhere else."""

    agent_ids: list[str]
    table_id: str
    url: str
    private_key: str
    model: str = ""
    seed: int = 0
    min_turn_ms: int = 0


class AgentProcess:
    """`await run()` keeps one child playing, started again whenever it dies, until `stop`."""

    def __init__(self, order: AgentOrder, *, environment: dict[str, str] | None = None) -> None:
        self.order = order
        self._environment = environment
        self.reports: list[bytes] = []
        """What children that ended well told of their counts, as JSON of CrewReport."""
        self.untold = 0
        """Children that ended otherwise: what they counted is not known."""
        self._process: Process | None = None
        self._stopping = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.returncode is None else None

    async def run(self) -> None:
        pause, clock = FIRST_PAUSE, asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                how = f"ended (exit {await self._live()})"
            except OSError as error:  # the machine has no process to give, or no memory, at this moment
                how = f"could not be started ({error.strerror})"
            if self._stopping:
                return
            log.warning("the process of %s %s and is started again", ", ".join(self.order.agent_ids), how)
            pause = FIRST_PAUSE if clock() - began > LONGEST_PAUSE else min(pause * 2, LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _live(self) -> int:
        """One child from its start to its end; its exit code."""
        self._process = await start_child("agentlab.hosted.agent_process", self.order, self._environment)
        assert self._process.stdout is not None
        told = [line async for line in self._process.stdout]
        self.reports += told
        self.untold += not told
        return await self._process.wait()

    async def stop(self, running: "asyncio.Task[None]") -> None:
        """Lets go of the child, which ends by itself; kills it where it does not."""
        self._stopping = True
        if self.pid and self._process and self._process.stdin:
            self._process.stdin.close()
            done, _ = await asyncio.wait({running}, timeout=STOP_SECONDS)
            if not done:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
        else:
            running.cancel()
        await asyncio.wait({running})


def issuer_key(order: AgentOrder) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(order.private_key))


# The child ------------------------------------------------------------------------------------------------------
async def _play(order: AgentOrder) -> bytes:
    from agentlab.hosted.crew import Crew, end
    from agentlab.hosted.tokens import TokenIssuer

    crew = Crew(
        issuer=TokenIssuer(issuer_key(order)), model=order.model, seed=order.seed, min_turn_ms=order.min_turn_ms
    )
    agents = [crew.agent(agent_id, order.table_id, order.url) for agent_id in order.agent_ids]
    tasks = [asyncio.create_task(agent.run()) for agent in agents]
    await let_go()
    for agent in agents:
        agent.end_with_the_play()
    await asyncio.gather(*(agent.stop() for agent in agents))
    await end(tasks)
    return msgspec.json.encode(await crew.close())


def main() -> None:
    order = begin(AgentOrder)
    report = asyncio.run(_play(order))
    print(report.decode(), flush=True)  # noqa: T201 - standard output is the pipe to the holder


if __name__ == "__main__":
    main()
