"""pi sessions: the files it keeps (versions 1 to 3) and what `pi --mode json` prints.

Format: packages/coding-agent/docs/session.md and docs/json.md of badlogic/pi-mono. In a session file each `user`
message begins a turn; versions 2 and 3 link records by `parentId`, version 1 has neither ids nor links. An assistant
entry with `stopReason` error that is followed by another under the same user message is a retry inside the attempt:
the failed reply is not sent again and is no turn of its own.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from factory.importers import images, jsonl
from factory.importers.building import BETWEEN, TurnBuilder, attempts, index_notes
from factory.importers.found import FoundSession, FoundToolCall
from factory.importers.turns import Index, Place, Turn, build_index
from factory.items import PacketItem
from factory.values import count, items, mapping, moment, money, text, written

SESSION, EVENTS = "pi session", "pi event stream"
_SHOWN_ENTRIES = {"session", "session_info", "title"}
_HIDDEN_ENTRIES = {"model_change", "thinking_level_change", "label", "custom", "custom_message"}
_MEMBER_ENTRIES = {"compaction", "branch_summary"}
_HIDDEN_EVENTS = {
    "agent_start", "agent_end", "turn_start", "turn_end", "message_start", "message_update", "tool_execution_start",
    "tool_execution_update", "tool_execution_end", "queue_update", "compaction_start", "compaction_end",
}  # fmt: skip
_MEMBER_EVENTS = {"auto_retry_start", "auto_retry_end"}
_FILE_BEGINS, _FILE_ENDS = re.compile(r'<file name="([^"\n]*)">'), "</file>"


def read(file: BinaryIO, path: Path) -> Iterator[FoundSession]:
    """The one session of the file, or of the event stream."""
    header, kind = _header(file)
    events = kind == EVENTS
    names: list[str] = []
    index = build_index(file, _place_event if events else _place_entry, lambda record: names.extend(_names(record)))
    session_id = text(header.get("id")) or None
    session = FoundSession(
        format=kind,
        session_id=session_id or jsonl.fingerprint(file),
        part=index.turns[0].record_id if events and index.turns else "",
        attempts=iter(()),
        counts=index.counts,
        workspace=text(header.get("cwd")),
        started_at=moment(header.get("timestamp")),
        notes=_session_notes(header, names, index),
    )
    session.attempts = attempts(file, index, lambda turn: _Builder(turn, session_id))
    yield session


def _header(file: BinaryIO) -> tuple[dict[str, Any], str]:
    """The session record, wherever it stands among the first lines, and which of the two kinds of file this is."""
    header: dict[str, Any] = {}
    for number, line in enumerate(jsonl.scan(file)):
        record = mapping(line.value)
        kind = text(record.get("type"))
        if kind == "session" and not header:
            header = record
        elif kind in _HIDDEN_EVENTS:
            return header, EVENTS
        elif kind == "message" or number > 50:
            break
    return header, SESSION


def _names(record: dict[str, Any]) -> list[str]:
    """The name that this record gives to the session, if it gives one; the last one counts."""
    if text(record.get("type")) not in {"session_info", "title"}:
        return []
    name = text(record.get("name")) or text(record.get("title"))
    return [name] if name else []


def _session_notes(header: dict[str, Any], names: list[str], index: Index) -> list[str]:
    notes = []
    if not header:
        notes.append("The file has no readable session header: session id unknown.")
    if names:
        notes.append(f"The session's name: {names[-1]}")
    if parent := text(header.get("parentSession")) or text(header.get("branchedFrom")):
        notes.append(f"Forked from {parent}.")
    return notes + index_notes(index)


def _place_entry(value: object) -> Place:
    record = mapping(value)
    kind, entry_id = text(record.get("type")), text(record.get("id")) or None
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
    kind = text(record.get("type"))
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


class _Builder(TurnBuilder):
    input_name, output_name, cache_names = "input", "output", ("cacheRead", "cacheWrite")

    def __init__(self, turn: Turn, session_id: str | None) -> None:
        super().__init__(turn, session_id)
        self.replied: list[dict[str, Any]] = []  # the assistant's messages

    def add(self, record: dict[str, Any]) -> None:
        message = mapping(record.get("message"))
        if record.get("type") == "compaction":
            self._compacted(record)
        elif text(record.get("type")) in {"message", "message_end"}:
            self._message(message, record)
        self.seen_at(moment(record.get("timestamp")) or moment(message.get("timestamp")))

    def usages(self) -> list[dict[str, Any]]:
        return [mapping(message.get("usage")) for message in self.replied]

    def _compacted(self, record: dict[str, Any]) -> None:
        before = count(record.get("tokensBefore"))
        size = f" ({before:,} tokens)" if before is not None else ""
        self.found.notes.append(f"After this turn the session's history{size} was replaced by a summary.")

    def _message(self, message: dict[str, Any], record: dict[str, Any]) -> None:
        role, said = message.get("role"), _message_text(message.get("content"))
        if role == "user":
            self.found.user_prompt = said
            self.found.inputs = _inputs(message.get("content"), said or "")
            self.found.asked = _beside_files(said or "").strip() or None
        elif role == "assistant":
            self._reply(message, said, record)
        elif role == "toolResult":
            failed = message.get("isError") is True
            name = text(message.get("toolName")) or "a call"
            self.result(text(message.get("toolCallId")), said or "", is_error=failed, name=name)
        elif role == "bashExecution":
            failed = message.get("exitCode") not in (0, None)  # it may be a list, which no set can look up
            command, output = text(message.get("command")), text(message.get("output"))
            typed = FoundToolCall("bash, typed by the user", command, output, failed, reply_offset=self.said())
            self.found.tool_calls.append(typed)

    def _reply(self, message: dict[str, Any], said: str | None, record: dict[str, Any]) -> None:
        self.replied.append(message)
        self.found.model = text(message.get("model")) or self.found.model
        self.found.provider = text(message.get("provider")) or self.found.provider
        before = self.said()
        if said:
            self.replies.append(said)
        texts: list[str] = []  # of this message, which may go on after a call
        for block in map(mapping, items(message.get("content"))):
            if block.get("type") == "text":
                texts.append(text(block.get("text")))
            elif block.get("type") == "toolCall":
                given = block.get("arguments")
                arguments = given if isinstance(given, str) else written(given or {})
                call = FoundToolCall(text(block.get("name")), arguments, started_at=moment(record.get("timestamp")))
                words = "\n".join(texts)
                call.reply_offset = before + len(words) + (len(BETWEEN) if before else 0) if words else before
                self.call(text(block.get("id")), call)

    def end(self) -> None:
        found = self.found
        costs = [money(mapping(usage.get("cost")).get("total")) for usage in self.usages()]
        known = [cost for cost in costs if cost is not None]
        found.cost = money(sum(known[1:], known[0])) if known else None
        for message in self.replied[:-1]:
            if message.get("stopReason") == "error":
                why = text(message.get("errorMessage")) or "no reason recorded"
                found.notes.append(f"The provider failed and was asked again within this attempt: {why}")
        last = self.replied[-1] if self.replied else {}
        stop, why = last.get("stopReason"), text(last.get("errorMessage"))
        if stop == "error":
            found.state, found.failure = "failed", "provider"
            found.error = why or "the provider failed; no reason is recorded"
        elif stop == "aborted":
            found.state, found.error = "cancelled", why or "aborted"
        elif not last:
            found.state, found.failure, found.error = "failed", "interrupted", "no reply is recorded"
        elif stop == "toolUse":
            found.state, found.failure = "failed", "interrupted"
            found.error = "the session ends, or goes on to another message, after a tool call"


def _message_text(content: object) -> str | None:
    """The text blocks of a message's content, one after the other; None where it has none."""
    if isinstance(content, str):
        return content
    blocks = [text(mapping(block).get("text")) for block in items(content) if mapping(block).get("type") == "text"]
    return "\n".join(blocks) if blocks else None


class _Mark(NamedTuple):
    """Where a file's text stands in a message, its markers included."""

    start: int
    end: int
    path: str
    words: str


def _marks(message: str) -> Iterator[_Mark]:
    """Each beginning with the next end after it. One pattern for both would look for the end of every beginning anew:
    minutes, where a megabyte of beginnings has none."""
    at = 0
    while begins := _FILE_BEGINS.search(message, at):
        end = message.find(_FILE_ENDS, begins.end())
        if end < 0:
            return
        at = end + len(_FILE_ENDS)
        yield _Mark(begins.start(), at, begins[1], message[begins.end() : end])


def _beside_files(message: str) -> str:
    kept, at = [], 0
    for mark in _marks(message):
        kept.append(message[at : mark.start])
        at = mark.end
    return "".join(kept) + message[at:]


def _inputs(content: object, message: str) -> list[PacketItem]:
    """Files given by `@name`: their text stands in the message between markers; an image leaves an empty marker.

    A marker is plain text that anybody may type, so each item says that it was derived from the message.
    """
    marks = [(mark.path, bool(mark.words.strip())) for mark in _marks(message)]
    pictures = [mapping(block) for block in items(content) if mapping(block).get("type") == "image"]
    empty = [path for path, has_text in marks if not has_text]
    found = [
        PacketItem(
            seq=seq,
            label=path.rsplit("/", 1)[-1] or path or f"input {seq}",
            source_kind="explicit_attachment",
            delivery_mode="inline",
            source_path=path,
            detail=images.DERIVED,
        )
        for seq, path in enumerate((path for path, has_text in marks if has_text), start=1)
    ]
    for number, picture in enumerate(pictures):
        path = empty[number] if len(empty) == len(pictures) else None
        label = (path or "").rsplit("/", 1)[-1] or f"image {number + 1}"
        data = text(picture.get("data"))
        found.append(images.attached(len(found) + 1, label, data, text(picture.get("mimeType")), source_path=path))
    return found
