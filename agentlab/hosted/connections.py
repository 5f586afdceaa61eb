"""One agent's connection as the table sees it: an outbox that never blocks the table, and a patience that runs out."""

import asyncio
import contextlib
import time
from collections.abc import Callable

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from agentlab.hosted.frames import Rejected, ToAgent, encode

OUTBOX_FRAMES = 1000
"""A viewer that is this far behind is cut off: it would otherwise cost memory without bound."""
PATIENCE = 20.0
"""Frames in a row that move nothing, before a connection is closed."""
PATIENCE_PER_SECOND = 5.0
POLICY, REPLACED, GONE, BUSY = 1008, 4000, 1001, 1013
"""Close codes: refused for its behaviour; another connection of the agent took over; the table ends; try later."""


class Connection:
    """`agent_id` is None until `enter` was accepted."""

    def __init__(self, socket: ServerConnection, clock: Callable[[], float] = time.monotonic) -> None:
        self.agent_id: str | None = None
        self.deployment_id: int | None = None
        self._socket = socket
        self._clock = clock
        self._outbox: asyncio.Queue[str | tuple[int, str]] = asyncio.Queue()
        self._closing = False
        self._patience = PATIENCE
        self._charged_at = self.since = clock()

    @property
    def is_nobody(self) -> bool:
        """Whether it has not said yet who it is."""
        return self.agent_id is None and not self._closing

    @property
    def is_heard(self) -> bool:
        """Whether it has entered and is not being closed: it sees the table, and its frames count."""
        return self.agent_id is not None and not self._closing

    def admit(self, agent_id: str, deployment_id: int) -> None:
        self.agent_id, self.deployment_id = agent_id, deployment_id

    def send(self, frame: ToAgent) -> None:
        """Puts a frame in the outbox; returns at once. A viewer that does not read is cut off."""
        if self._closing:
            return
        if self._outbox.qsize() >= OUTBOX_FRAMES:
            self.cut()  # its writer hangs in a socket that is full
        else:
            self._outbox.put_nowait(encode(frame))

    def reject(self, reason: str, hand_number: int | None = None, action_index: int | None = None) -> None:
        self.send(Rejected(hand_number=hand_number, action_index=action_index, reason=reason))

    def close(self, code: int, reason: str) -> None:
        """Closes once the outbox is empty. Nothing more can be sent."""
        if not self._closing:
            self._closing = True
            self._outbox.put_nowait((code, reason))

    def shun(self, reason: str) -> None:
        """Closes, and reads nothing more meanwhile: what it still sends stays in its own buffers."""
        self._socket.transport.pause_reading()
        self.close(POLICY, reason)

    def cut(self) -> None:
        """Ends the connection at once, without a word."""
        self._closing = True
        self._socket.transport.abort()

    def charge(self) -> bool:
        """Takes one frame that moved nothing off the connection's patience. False once there is none left."""
        now = self._clock()
        self._patience = min(PATIENCE, self._patience + (now - self._charged_at) * PATIENCE_PER_SECOND) - 1
        self._charged_at = now
        return self._patience >= 0

    async def write(self) -> None:
        """Empties the outbox until the connection is closed; runs beside the reader."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                item = await self._outbox.get()
                if isinstance(item, tuple):
                    await self._socket.close(*item)
                    return
                await self._socket.send(item)
