"""Putting one attempt together from the records of its turn: what every line format has in common."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, BinaryIO

from factory.importers import jsonl
from factory.importers.found import TURN, FoundAttempt, FoundToolCall
from factory.importers.turns import Index, Turn
from factory.values import NO_OFFSET, count, mapping, total

BETWEEN = "\n\n"
"""What stands between two messages of an attempt's reply."""


class TurnBuilder:
    """One attempt in the making. A format's own builder reads its records in `add` and says how it ended in `end`."""

    input_name: str
    output_name: str
    cache_names: tuple[str, ...]

    def __init__(self, turn: Turn, session_id: str | None, phase: str = TURN) -> None:
        self.found = FoundAttempt(
            record_id=turn.record_id,
            phase=phase,
            session_id=session_id,
            turn_index=turn.index,
            previous=turn.previous.record_id if turn.previous else None,
        )
        self.replies: list[str] = []
        self._calls: dict[str, FoundToolCall] = {}
        self._joined = 0  # the characters of the first `_counted` replies, with what parts them
        self._counted = 0
        self._early: dict[str, FoundToolCall] = {}  # results that stand before their call, or have none

    def add(self, record: dict[str, Any]) -> None:
        raise NotImplementedError

    def usages(self) -> list[dict[str, Any]]:
        """What each model call of the turn used, as the format wrote it."""
        raise NotImplementedError

    def end(self) -> None:
        """Say on `found` how the turn ended."""
        raise NotImplementedError

    def seen_at(self, at: datetime | None) -> None:
        if at is not None:
            self.found.started_at = self.found.started_at or at
            self.found.ended_at = max(at, self.found.ended_at or at)

    def said(self) -> int:
        """How many characters the reply has so far."""
        self._joined += sum(len(words) + len(BETWEEN) for words in self.replies[self._counted :])
        self._counted = len(self.replies)
        return max(0, self._joined - len(BETWEEN))

    def call(self, call_id: str, call: FoundToolCall) -> None:
        """A tool call. Its result is paired by id, wherever it stands."""
        call.reply_offset = self.said() if call.reply_offset is None else call.reply_offset
        self.found.tool_calls.append(call)
        self._calls[call_id] = call
        if early := self._early.pop(call_id, None):
            call.output, call.is_error = early.output, early.is_error

    def result(self, call_id: str, output: str, *, is_error: bool, name: str = "a call") -> None:
        if call := self._calls.get(call_id):
            call.output, call.is_error = output, is_error
        else:
            self._early[call_id] = FoundToolCall(f"{name} that is not in the file", "", output, is_error)

    def attempt(self) -> FoundAttempt:
        found, usages = self.found, self.usages()
        if found.user_prompt is None:
            found.notes.append("The message that began this turn is not in the file.")
        if self.replies:
            found.reply = BETWEEN.join(self.replies)
        found.input_tokens = total([count(usage.get(self.input_name)) for usage in usages])
        found.output_tokens = total([count(usage.get(self.output_name)) for usage in usages])
        found.cached_input_tokens = total([count(usage.get(name)) for usage in usages for name in self.cache_names])
        found.tool_calls += self._early.values()
        self.end()
        return found


def attempts(file: BinaryIO, index: Index, builder_of: Callable[[Turn], TurnBuilder]) -> Iterator[FoundAttempt]:
    """The attempts of an indexed file, one in memory at a time."""
    for turn in index.turns:
        builder = builder_of(turn)
        for offset, length in turn.places:
            builder.add(mapping(jsonl.read_at(file, offset, length)))
        yield builder.attempt()


def index_notes(index: Index) -> list[str]:
    """What the reader of a session should know about the file it came from."""
    notes = []
    if index.unreachable:
        names = "records name" if index.unreachable > 1 else "record names"
        notes.append(f"{index.unreachable:,} {names} a parent that is not in this file.")
    if index.without_offset:
        notes.append(NO_OFFSET)
    if index.unfinished:
        notes.append("The last line is not complete: the file was still being written.")
    return notes
