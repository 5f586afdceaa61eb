"""pi sessions: the files it keeps (versions 1 to 3) and what `pi --mode json` prints.

Format: packages/coding-agent/docs/session.md and docs/json.md of badlogic/pi-mono. In a session file each `user`
message begins a turn; versions 2 and 3 link records by `parentId`, version 1 has neither ids nor links. An assistant
entry with `stopReason` error that is followed by another under the same user message is a retry inside the attempt:
the failed reply is not sent again and is no turn of its own.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from factory.importers import images, jsonl
from factory.importers.found import FoundAttempt, FoundSession, FoundToolCall
from factory.importers.turns import Index, Place, Turn, build_index
from factory.importers.values import count, items, mapping, moment, money, text, total
from factory.items import PacketItem

SESSION, EVENTS = "pi session", "pi event stream"
_SHOWN_ENTRIES = {"session", "session_info", "title"}
_HIDDEN_ENTRIES = {"model_change", "thinking_level_change", "label", "custom", "custom_message"}
_MEMBER_ENTRIES = {"compaction", "branch_summary"}
_HIDDEN_EVENTS = {
    "agent_start", "agent_end", "turn_start", "turn_end", "message_start", "message_update", "tool_execution_start",
    "tool_execution_update", "tool_execution_end", "queue_update", "compaction_start", "compaction_end",
}  # fmt: skip
_MEMBER_EVENTS = {"auto_retry_start", "auto_retry_end"}
_FILE_MARK = re.compile(r'<file name="([^"\n]*)">(.*?)</file>', re.DOTALL)


def read(file: BinaryIO, path: Path) -> Iterator[FoundSession]:
    """The one session of the file, or of the event stream."""
    header, kind = _header(file)
    events = kind == EVENTS
    index = build_index(file, _place_event if events else _place_entry)
    session_id = text(header.get("id")) or f"unknown: {path.name}"
    session = FoundSession(
        format=kind,
        session_id=session_id,
        attempts=iter(()),
        counts=index.counts,
        title=_title(file),
        workspace=text(header.get("cwd")),
        started_at=moment(header.get("timestamp")),
        notes=_session_notes(header, index),
    )
    session.attempts = _attempts(file, index, session_id, session)
    yield session


def _header(file: BinaryIO) -> tuple[dict[str, Any], str]:
    """The session record, wherever it stands among the first lines, and which of the two kinds of file this is."""
    header: dict[str, Any] = {}
    for number, line in enumerate(jsonl.scan(file)):
        record = mapping(line.value)
        if record.get("type") == "session" and not header:
            header = record
        elif record.get("type") in _HIDDEN_EVENTS:
            return header, EVENTS
        elif record.get("type") == "message" or number > 50:
            break
    return header, SESSION


def _title(file: BinaryIO) -> str:
    """The name that was last given to the session."""
    name = ""
    for line in jsonl.scan(file):
        record = mapping(line.value)
        if record.get("type") in {"session_info", "title"}:
            name = text(record.get("name")) or text(record.get("title")) or name
    return name


def _session_notes(header: dict[str, Any], index: Index) -> list[str]:
    notes = []
    if not header:
        notes.append("The file has no readable session header: session id unknown.")
    if parent := text(header.get("parentSession")) or text(header.get("branchedFrom")):
        notes.append(f"Forked from {parent}.")
    if index.unreachable:
        notes.append(f"{index.unreachable} records name a parent that is not in this file.")
    if index.unfinished:
        notes.append("The last line is not complete: the file was still being written.")
    return notes


def _place_entry(value: object) -> Place:
    record = mapping(value)
    kind, entry_id = record.get("type"), text(record.get("id")) or None
    parent = text(record.get("parentId")) or None
    if not isinstance(value, dict):
        return Place("damaged")
    if kind == "message":
        role = mapping(record.get("message")).get("role")
        return Place("start" if role == "user" else "member", entry_id, parent)
    if kind == "session":
        return Place("shown")
    if kind in _MEMBER_ENTRIES:
        return Place("member", entry_id, parent)
    if kind in _SHOWN_ENTRIES:
        return Place("shown", entry_id, parent)
    return Place("hidden" if kind in _HIDDEN_ENTRIES else "unknown", entry_id, parent)


def _place_event(value: object) -> Place:
    record = mapping(value)
    kind = record.get("type")
    if not isinstance(value, dict):
        return Place("damaged")
    if kind == "message_end":
        message = mapping(record.get("message"))
        # The stream has no ids, and the streams of one session begin alike: the time of the message tells them apart.
        at = count(message.get("timestamp"))
        return Place("start", f"message at {at}" if at else None) if message.get("role") == "user" else Place("member")
    if kind in _MEMBER_EVENTS:
        return Place("member")
    if kind in _SHOWN_ENTRIES:
        return Place("shown")
    return Place("hidden" if kind in _HIDDEN_EVENTS else "unknown")


def _attempts(file: BinaryIO, index: Index, session_id: str, session: FoundSession) -> Iterator[FoundAttempt]:
    cached = 0
    for turn in index.turns:
        builder = _Builder(turn, session_id)
        for offset, length in turn.places:
            builder.add(mapping(jsonl.read_at(file, offset, length)))
        cached += builder.cached
        yield builder.attempt()
    if cached:
        session.notes.append(f"Input tokens leave out {cached:,} that the provider read from or wrote to its cache.")


class _Builder:
    """Puts one attempt together from the records of its turn."""

    def __init__(self, turn: Turn, session_id: str) -> None:
        self.found = FoundAttempt(
            record_id=turn.record_id,
            phase="turn",
            session_id=session_id,
            turn_index=turn.index,
            previous=turn.previous.record_id if turn.previous else None,
        )
        self.calls: dict[str, FoundToolCall] = {}
        self.early: dict[str, dict[str, Any]] = {}  # results that stand before their call
        self.usages: list[dict[str, Any]] = []
        self.replies: list[str] = []
        self.last: dict[str, Any] = {}
        self.failed_tries: list[str] = []
        self.cached = 0

    def add(self, record: dict[str, Any]) -> None:
        if record.get("type") == "compaction":
            self._compacted(record)
        elif record.get("type") in {"message", "message_end"}:
            self._message(mapping(record.get("message")), record)
        self._seen_at(record)

    def _seen_at(self, record: dict[str, Any]) -> None:
        at = moment(record.get("timestamp")) or moment(mapping(record.get("message")).get("timestamp"))
        if at is None:
            return
        if self.found.started_at is None:
            self.found.started_at = at
        self.found.ended_at = max(at, self.found.ended_at or at)

    def _compacted(self, record: dict[str, Any]) -> None:
        before = count(record.get("tokensBefore"))
        size = f" ({before:,} tokens)" if before is not None else ""
        self.found.notes.append(f"After this turn the session's history{size} was replaced by a summary.")

    def _message(self, message: dict[str, Any], record: dict[str, Any]) -> None:
        role = message.get("role")
        if role == "user":
            self.found.user_prompt = _message_text(message.get("content"))
            self.found.inputs = _inputs(message.get("content"), self.found.user_prompt or "")
        elif role == "assistant":
            self._reply(message, record)
        elif role == "toolResult":
            self._result(text(message.get("toolCallId")), message)
        elif role == "bashExecution":
            output = text(message.get("output"))
            failed = message.get("exitCode") not in {0, None}
            self.found.tool_calls.append(
                FoundToolCall("bash, typed by the user", text(message.get("command")), output, failed)
            )

    def _reply(self, message: dict[str, Any], record: dict[str, Any]) -> None:
        if self.last.get("stopReason") == "error":
            self.failed_tries.append(text(self.last.get("errorMessage")))
        self.last = message
        self.found.model = text(message.get("model")) or self.found.model
        self.found.provider = text(message.get("provider")) or self.found.provider
        self.usages.append(mapping(message.get("usage")))
        if said := _message_text(message.get("content")):
            self.replies.append(said)
        for block in items(message.get("content")):
            if mapping(block).get("type") == "toolCall":
                self._call(mapping(block), record)

    def _call(self, block: dict[str, Any], record: dict[str, Any]) -> None:
        arguments = block.get("arguments")
        written = (
            arguments
            if isinstance(arguments, str)
            else json.dumps(arguments if arguments is not None else {}, ensure_ascii=False)
        )
        call = FoundToolCall(text(block.get("name")), written, started_at=moment(record.get("timestamp")))
        self.found.tool_calls.append(call)
        call_id = text(block.get("id"))
        self.calls[call_id] = call
        if call_id in self.early:
            self._result(call_id, self.early.pop(call_id))

    def _result(self, call_id: str, message: dict[str, Any]) -> None:
        call = self.calls.get(call_id)
        if call is None:
            self.early[call_id] = message
            return
        call.output = _message_text(message.get("content")) or ""
        call.is_error = message.get("isError") is True

    def attempt(self) -> FoundAttempt:
        found = self.found
        if found.user_prompt is None:
            found.notes.append("The message that began this turn is not in the file.")
        if self.replies:
            found.reply = "\n\n".join(self.replies)
        found.input_tokens = total([count(usage.get("input")) for usage in self.usages])
        found.output_tokens = total([count(usage.get("output")) for usage in self.usages])
        self.cached = sum(
            (count(usage.get(name)) or 0) for usage in self.usages for name in ("cacheRead", "cacheWrite")
        )
        costs = [cost for usage in self.usages if (cost := money(mapping(usage.get("cost")).get("total"))) is not None]
        found.cost = sum(costs[1:], costs[0]) if costs else None
        for message in self.early.values():
            name = text(message.get("toolName")) or "unknown tool"
            found.tool_calls.append(
                FoundToolCall(f"{name} (its call is not in the file)", "", _message_text(message.get("content")))
            )
        for error in self.failed_tries:
            found.notes.append(
                f"The provider failed and was asked again within this attempt: {error or 'no reason recorded'}"
            )
        self._end()
        return found

    def _end(self) -> None:
        found, stop = self.found, self.last.get("stopReason")
        if stop == "error":
            found.state, found.failure = "failed", "provider"
            found.error = text(self.last.get("errorMessage")) or "the provider failed; no reason is recorded"
        elif stop == "aborted":
            found.state, found.error = "cancelled", text(self.last.get("errorMessage")) or "aborted"
        elif not self.last:
            found.state, found.failure = "failed", "interrupted"
            found.error = "no reply is recorded"
        elif stop == "toolUse":
            found.state, found.failure = "failed", "interrupted"
            found.error = "the session ends, or goes on to another message, after a tool call"


def _message_text(content: object) -> str | None:
    """The text blocks of a message's content, one after the other; None where it has none."""
    if isinstance(content, str):
        return content
    blocks = [text(mapping(block).get("text")) for block in items(content) if mapping(block).get("type") == "text"]
    return "\n".join(blocks) if blocks else None


def _inputs(content: object, message: str) -> list[PacketItem]:
    """Files given by `@name`: their text stands in the message between markers; an image leaves an empty marker.

    A marker is plain text that anybody may type, so each item says that it was derived from the message.
    """
    marks = [(match[1], bool(match[2].strip())) for match in _FILE_MARK.finditer(message)]
    pictures = [mapping(block) for block in items(content) if mapping(block).get("type") == "image"]
    empty = [path for path, has_text in marks if not has_text]
    found = [
        PacketItem(
            seq=seq,
            label=path.rsplit("/", 1)[-1] or path,
            source_kind="explicit_attachment",
            delivery_mode="inline",
            source_path=path,
            detail=images.DERIVED,
        )
        for seq, path in enumerate((path for path, has_text in marks if has_text), start=1)
    ]
    for number, picture in enumerate(pictures):
        path = empty[number] if len(empty) == len(pictures) else None
        label = path.rsplit("/", 1)[-1] if path else f"image {number + 1}"
        data = text(picture.get("data"))
        found.append(images.attached(len(found) + 1, label, data, text(picture.get("mimeType")), source_path=path))
    return found
