"""What a process of ours that is held by another has in common: how it is started, and how it is let go.

The child reads its order as one JSON line on standard input and goes on listening there: when that pipe closes, because
its holder let go or was killed, the child ends too; a further line is the holder's wish that it end soon. What it has
to tell goes to standard output, a JSON line each.
"""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

PROJECT = Path(__file__).resolve().parents[2]
LONGEST_LINE = 2**20  # bytes of one line that a child tells

T = TypeVar("T")


async def start_child(module: str, order: msgspec.Struct, environment: dict[str, str] | None = None) -> Process:
    """A Python process that runs `module` in a session of its own, and has been handed its order."""
    line = msgspec.json.encode(order) + b"\n"  # before there is a process that waits for it
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", module),
        stdin=PIPE,
        stdout=PIPE,
        cwd=PROJECT,
        env=environment,
        start_new_session=True,  # Ctrl-C is the holder's to answer
        limit=LONGEST_LINE,
    )
    assert process.stdin is not None
    with contextlib.suppress(OSError):  # it may be dead already; its exit code says so
        process.stdin.write(line)
    return process


def ask_to_end_soon(process: Process) -> None:
    """The child's `let_go` is told. To a child that has ended nothing needs to be said."""
    if process.stdin is not None and not process.stdin.is_closing():
        with contextlib.suppress(OSError):
            process.stdin.write(b"soon\n")


# In the child ---------------------------------------------------------------------------------------------------
def begin(order: type[T]) -> T:
    """Django is set up, and the order read."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentlab.settings")
    import django

    django.setup()
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as pipe:
        line = pipe.readline()  # and not a byte of what comes after it
    if not line.endswith(b"\n"):
        sys.exit(1)  # the holder ended before it could say what to do
    return msgspec.json.decode(line, type=order)


async def let_go(soon: Callable[[], object] = lambda: None) -> None:
    """Returns when the holder closes the pipe. `soon` is called when the holder wishes an end before that, and at
    SIGTERM or SIGINT: a service manager sends those to every process, and how they end is the holder's to say."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, soon)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for _ in reader:
        soon()
