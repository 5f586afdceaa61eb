"""Claude Code sessions: `<sessionId>.jsonl`, their sub-agents' files, and the web export.

There is no public schema; what is read here was learned from files. One API message is split over several rows (a
content block each) that share `message.id`, and early rows hold partial token counts: the largest count of a message
is the true one. A sub-agent's file carries its parent's `sessionId`, so its own name is its id. The system prompt is
not in the file.
"""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from factory.importers import images, jsonl
from factory.importers.building import TurnBuilder, attempts, index_notes
from factory.importers.found import SUB_AGENT, TURN, FoundSession, FoundToolCall, NotSupportedError, TooLargeError
from factory.importers.turns import Place, Turn, build_index
from factory.items import PacketItem
from factory.values import count, items, mapping, moment, text, written

FORMAT = "Claude Code session"
WEB_EXPORT_LIMIT = 64 * 1024**2  # one JSON object, read whole
_HIDDEN = {
    "progress", "queue-operation", "file-history-snapshot", "last-prompt", "mode", "permission-mode", "ai-title",
    "attachment", "agent-name", "custom-title", "tag", "pr-link",
}  # fmt: skip
_INTERRUPTED = "[Request interrupted by user"


def read(file: BinaryIO, path: Path) -> Iterator[FoundSession]:
    """The session of one file. A sub-agent's file gives its parent's session id, and its own name to its attempts."""
    yield _read(file, path.stem, is_subagent=path.stem.startswith("agent-"))


def read_web_export(file: BinaryIO, path: Path) -> Iterator[FoundSession]:
    """The one JSON object of a web export: its `loglines` are the rows. Raises TooLargeError and NotSupportedError."""
    file.seek(0)
    raw = file.read(WEB_EXPORT_LIMIT + 1)
    if len(raw) > WEB_EXPORT_LIMIT:
        raise TooLargeError(f"a web export may have {WEB_EXPORT_LIMIT // 1024**2} MiB at most")
    try:
        rows = items(mapping(json.loads(raw)).get("loglines"))
        lines = io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    except (ValueError, RecursionError):
        raise NotSupportedError("not supported: the JSON of this web export is damaged or cut short") from None
    yield _read(lines, path.stem, is_subagent=False)


def subagent_files(path: Path) -> list[Path]:
    """The files of a session's sub-agents: in its own folder, or (older) beside it, naming it on their first row."""
    own = _files(path.parent / path.stem / "subagents")
    if path.stem.startswith("agent-"):
        return own
    return own + [other for other in _files(path.parent) if _parent_of(other) == path.stem]


def _files(folder: Path) -> list[Path]:
    # Regular files alone: whoever opens a FIFO waits for its writer.
    return [path for path in sorted(folder.glob("agent-*.jsonl")) if path.is_file()]


def _parent_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return text(mapping(json.loads(file.readline(1024**2))).get("sessionId")) or None
    except (OSError, ValueError, RecursionError):
        return None


def _read(file: BinaryIO, name: str, *, is_subagent: bool) -> FoundSession:
    facts: dict[str, str] = {}
    index = build_index(file, _place, lambda row: _learn(facts, row))
    session_id = facts.get("sessionId")
    session = FoundSession(
        format=FORMAT,
        session_id=session_id or jsonl.fingerprint(file),
        part=name if is_subagent else "",
        attempts=iter(()),
        counts=index.counts,
        title=facts.get("summary", ""),
        workspace=facts.get("cwd", ""),
        started_at=moment(facts.get("timestamp")),
        notes=["The system prompt is not in a Claude Code file.", *index_notes(index)],
    )
    phase, name_of_turns = (SUB_AGENT, name) if is_subagent else (TURN, session_id)
    session.attempts = attempts(file, index, lambda turn: _Builder(turn, name_of_turns, phase), session)
    return session


def _learn(facts: dict[str, str], row: dict[str, Any]) -> None:
    """Keeps the first of each fact that rows repeat, and the last summary."""
    for name in ("sessionId", "cwd", "timestamp"):
        if name not in facts and text(row.get(name)):
            facts[name] = row[name]
    if row.get("type") == "summary":
        facts["summary"] = text(row.get("summary"))


def _place(value: object) -> Place:
    if not isinstance(value, dict):
        return Place("damaged")
    kind, row_id = text(value.get("type")), text(value.get("uuid")) or None
    parent = text(value.get("parentUuid")) or text(value.get("logicalParentUuid")) or None
    if kind == "user":
        return Place("start" if _starts_turn(value) else "member", row_id, parent)
    if kind == "assistant":
        return Place("member", row_id, parent)
    if kind == "system":
        return Place("member" if value.get("subtype") == "compact_boundary" else "hidden", row_id, parent)
    if kind == "summary":
        return Place("shown", row_id, parent)
    return Place("hidden" if kind in _HIDDEN else "unknown", row_id, parent)


def _starts_turn(row: dict[str, Any]) -> bool:
    if row.get("isMeta") or row.get("isCompactSummary"):
        return False
    content = _content(row)
    if isinstance(content, str):
        return bool(content) and not content.startswith(_INTERRUPTED)
    blocks = [mapping(block) for block in items(content)]
    if any(block.get("type") == "tool_result" for block in blocks):
        return False
    said = [text(block.get("text")) for block in blocks if block.get("type") == "text"]
    return any(words and not words.startswith(_INTERRUPTED) for words in said)


def _content(row: dict[str, Any]) -> object:
    message = row.get("message")
    return message if isinstance(message, str) else mapping(message).get("content")


class _Builder(TurnBuilder):
    input_name, output_name = "input_tokens", "output_tokens"
    cache_names = ("cache_read_input_tokens", "cache_creation_input_tokens")

    def __init__(self, turn: Turn, session_id: str | None, phase: str) -> None:
        super().__init__(turn, session_id, phase)
        self.found.provider = "anthropic"
        self.usage: dict[str, dict[str, Any]] = {}  # by API message: the row with the most output tokens
        self.interrupted = False

    def add(self, row: dict[str, Any]) -> None:
        self.seen_at(moment(row.get("timestamp")))
        if row.get("type") == "system":
            self.found.notes.append("After this point the session's history was replaced by a summary.")
        elif row.get("type") == "assistant":
            self._assistant(row)
        elif self.found.user_prompt is None and _starts_turn(row):
            self._user(row)
        else:
            self._other_user(row)

    def usages(self) -> list[dict[str, Any]]:
        return list(self.usage.values())

    def _user(self, row: dict[str, Any]) -> None:
        content = _content(row)
        if row.get("isSidechain"):
            self.found.phase = SUB_AGENT
        if isinstance(content, str):
            self.found.user_prompt = content
            return
        blocks = [mapping(block) for block in items(content)]
        self.found.user_prompt = "\n".join(text(block.get("text")) for block in blocks if block.get("type") == "text")
        self.found.inputs = _attachments(blocks)

    def _other_user(self, row: dict[str, Any]) -> None:
        content = _content(row)
        if isinstance(content, str):
            self.interrupted = self.interrupted or content.startswith(_INTERRUPTED)
        for block in map(mapping, items(content)):
            if block.get("type") == "tool_result":
                output, failed = _result_text(block.get("content")), block.get("is_error") is True
                self.result(text(block.get("tool_use_id")), output, is_error=failed)
            elif text(block.get("text")).startswith(_INTERRUPTED):
                self.interrupted = True

    def _assistant(self, row: dict[str, Any]) -> None:
        message = mapping(row.get("message"))
        if row.get("isApiErrorMessage"):
            self.found.state, self.found.failure = "failed", "provider"
        self.found.model = text(message.get("model")) or self.found.model
        self._count(message, text(row.get("requestId")))
        for block in map(mapping, items(message.get("content"))):
            if block.get("type") == "text" and text(block.get("text")):
                self.replies.append(block["text"])
            elif block.get("type") == "tool_use":
                given = block.get("input")
                arguments = written(given) if given is not None else ""
                call = FoundToolCall(text(block.get("name")), arguments, started_at=moment(row.get("timestamp")))
                self.call(text(block.get("id")), call)

    def _count(self, message: dict[str, Any], request_id: str) -> None:
        usage = mapping(message.get("usage"))
        if not usage:
            return
        key = f"{text(message.get('id'))} {request_id}" if message.get("id") else f"row {len(self.usage)}"
        known = count(self.usage.get(key, {}).get("output_tokens"))
        if key not in self.usage or (count(usage.get("output_tokens")) or 0) > (known or 0):
            self.usage[key] = usage

    def end(self) -> None:
        found = self.found
        if self.interrupted:
            found.state, found.error = "cancelled", "interrupted by the user"
        elif found.failure == "provider":
            found.error = found.reply or "the provider failed; no reason is recorded"
        elif not self.replies and not found.tool_calls:
            found.state, found.failure, found.error = "failed", "interrupted", "no reply is recorded"
        elif found.tool_calls and found.tool_calls[-1].output is None:
            found.state, found.failure = "failed", "interrupted"
            found.error = "the file ends at a tool call without a result"


def _result_text(content: object) -> str:
    """A tool result as text; a picture in it is named by its kind and size, not printed as base64."""
    if isinstance(content, str):
        return content
    parts = []
    for block in map(mapping, items(content)):
        source = mapping(block.get("source"))
        if text(source.get("data")):
            parts.append(
                f"[{text(source.get('media_type')) or 'data'}, {len(source['data']) * 3 // 4:,} bytes, not shown]"
            )
        else:
            parts.append(text(block.get("text")))
    return "\n".join(parts)


def _attachments(blocks: list[dict[str, Any]]) -> list[PacketItem]:
    found: list[PacketItem] = []
    for block in blocks:
        source = mapping(block.get("source"))
        kind = text(block.get("type"))
        if kind in {"image", "document"} and source:
            seq = len(found) + 1
            label = text(block.get("title")) or f"{kind} {seq}"
            found.append(images.attached(seq, label, text(source.get("data")), text(source.get("media_type"))))
    return found
