"""A process that holds a table and does nothing else: tests kill it."""

import asyncio
import sys

import msgspec

from agentlab.hosted.table_process import Order, TableProcess


async def hold(order: Order) -> None:
    async with TableProcess(order) as table:
        print(table.pid, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(hold(msgspec.json.decode(sys.argv[1].encode(), type=Order)))
