"""What the factory's tests build with: a snapshot folder of their own, calls, and a clock that a test turns."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from factory.calls import AgentCall
from factory.lineage import Lineage
from factory.packets import AgentInputPacket, capture_attempt_inputs
from factory.snapshots import Deadline, Folder

ATTEMPT = "a" * 32


class Clock:
    """Seconds that pass only when the test says so, or a little each time somebody looks."""

    def __init__(self, step: float = 0.0) -> None:
        self.time, self.step, self.looks = 1000.0, step, 0

    def __call__(self) -> float:
        self.looks += 1
        self.time += self.step
        return self.time


@contextmanager
def open_snapshots(path: Path, refuse: Callable[[int], str | None] = lambda size: None) -> Iterator[Folder]:
    path.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield Folder(handle, refuse, lambda size: None)
    finally:
        os.close(handle)


def call_with(context: Path | str | None = None, **fields: object) -> AgentCall:
    values = {"phase": "ask", "task": "Do it", "system_prompt": "You are", "user_prompt": "Do it"} | fields
    return AgentCall(**values, context_root=None if context is None else str(context))  # type: ignore[arg-type]


def capture(
    snapshots: Path,
    call: AgentCall,
    *,
    lineage: Lineage | None = None,
    deadline: Deadline | None = None,
    refuse: Callable[[int], str | None] = lambda size: None,
) -> AgentInputPacket:
    with open_snapshots(snapshots, refuse) as folder:
        return capture_attempt_inputs(call, lineage or Lineage(), attempt_id=ATTEMPT, folder=folder, deadline=deadline)


def rows(packet: AgentInputPacket) -> list[tuple[str, str, str | None]]:
    return [(item.label, item.capture_status, item.detail) for item in packet.items]


def statuses(packet: AgentInputPacket) -> dict[str, str]:
    return {item.label: item.capture_status for item in packet.items}
