"""The handle of an agent's process: it is started again, whatever ended it or kept it from starting."""

import asyncio
import errno
import os

from agentlab.hosted import agent_process
from agentlab.hosted.agent_process import AgentOrder, AgentProcess
from tests.hosted.tables import until

ORDER = AgentOrder(agent_ids=["rocky"], table_id="t-1", url="ws://nowhere", private_key="")


def test_a_machine_without_a_process_to_give_is_asked_again_and_the_agent_is_not_lost(monkeypatch, caplog):
    # SF-5, HA-1
    refusals = [OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))] * 2

    async def start_child(module, order, environment):
        if refusals:
            raise refusals.pop()
        return await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)  # ends when it is let go

    monkeypatch.setattr(agent_process, "start_child", start_child)
    monkeypatch.setattr(agent_process, "FIRST_PAUSE", 0.01)

    async def run():
        process = AgentProcess(ORDER)
        running = asyncio.create_task(process.run())
        await until(lambda: process.pid or running.done())
        assert process.pid
        await process.stop(running)
        assert running.result() is None

    asyncio.run(run())
    said = "the process of rocky could not be started (Resource temporarily unavailable) and is started again"
    assert [record.getMessage() for record in caplog.records] == [said] * 2
