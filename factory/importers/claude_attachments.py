"""What Claude Code put before the model beside a message: its `attachment` records, and the pictures in messages.

There is no public schema; the kinds below were learned from files. Any other kind is no input (reminders, hooks, lists
of tools and of tasks), and neither is a record that carries no path and no text, whatever it calls itself.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from agentlab.common.numbers import counted
from factory.importers import images
from factory.items import PacketItem
from factory.values import count, items, mapping, text

_Reader = Callable[[dict[str, Any]], Iterator[PacketItem]]

RECORDED = "recorded beside the message; size and hash are of that text, which was not kept"
NAMED = "named beside the message; no text of it is recorded"
READ_BEFORE = "in the session already, and not sent again"
_INSTRUCTIONS = "instructions that the tool added"
_BY_THE_TOOL = ("<task-notification>", "<system-reminder>", "[SYSTEM NOTIFICATION")  # in place of what somebody typed


def inputs_of(row: dict[str, Any]) -> list[PacketItem]:
    """The inputs that an `attachment` record stands for, none where it stands for nothing of the kind."""
    attachment = mapping(row.get("attachment"))
    reader = _READERS.get(text(attachment.get("type")))
    return list(reader(attachment)) if reader else []


def typed(row: dict[str, Any]) -> str:
    """What a person typed while the model worked, where the record is such a message: the model had it in this turn."""
    attachment = mapping(row.get("attachment"))
    is_one = attachment.get("type") == "queued_command" and _by_a_person(attachment)
    return _words(attachment) if is_one else ""


def in_message(blocks: list[Any]) -> list[PacketItem]:
    """The pictures and documents among a message's own blocks."""
    found: list[PacketItem] = []
    for block in map(mapping, blocks):
        source = mapping(block.get("source"))
        kind = text(block.get("type"))
        if kind in {"image", "document"} and source:
            seq = len(found) + 1
            label = text(block.get("title")) or f"{kind} {seq}"
            found.append(images.attached(seq, label, text(source.get("data")), text(source.get("media_type"))))
    return found


def numbered(found: Iterable[PacketItem]) -> list[PacketItem]:
    return [replace(item, seq=seq, label=item.label or f"input {seq}") for seq, item in enumerate(found, start=1)]


def came(when: str, item: PacketItem) -> PacketItem:
    """The item, with the word on when it came before the rest of what is said of it."""
    return replace(item, detail=f"{when}; {item.detail}")


def _item(label: str, path: str, words: object, *said: str) -> Iterator[PacketItem]:
    """Inline where its text is recorded, else named by its path; nothing where there is neither."""
    more = [part for part in said if part]
    if isinstance(words, str):
        raw = words.encode("utf-8", "surrogatepass")
        yield PacketItem(
            seq=0,
            label=label or path,
            source_kind="explicit_attachment",
            delivery_mode="inline",
            source_path=path or None,
            size_bytes=len(raw),
            sha256=hashlib.sha256(raw).hexdigest(),
            detail="; ".join([*more, RECORDED]),
        )
    elif path:
        yield _named(label, path, *more)


def _named(label: str, path: str, *said: str) -> PacketItem:
    return PacketItem(
        seq=0,
        label=label or path,
        source_kind="explicit_attachment",
        delivery_mode="path_reference",
        source_path=path,
        detail="; ".join([*said, NAMED]),
    )


def _names(attachment: dict[str, Any], *keys: str) -> tuple[str, str]:
    """How the tool shows the path, and the path: each may stand for the other."""
    shown = text(attachment.get("displayPath"))
    path = next((name for key in keys if (name := text(attachment.get(key)))), "") or shown
    return shown or path, path


def _lines(first: int | None, last: int | None, of: int | None = None) -> str:
    """Which lines of a file, "" where what is said of them cannot be."""
    if first is None or last is None or first > last or (of is not None and last > of):
        return ""
    where = f"lines {first:,}–{last:,}" if first < last else f"line {first:,}"
    return f"{where} of {of:,}" if of is not None else where


def _part(held: dict[str, Any]) -> str:
    """The lines of a file's part; "" of a whole file."""
    first, how_many, of = (count(held.get(key)) for key in ("startLine", "numLines", "totalLines"))
    if not first or not how_many or of is None or how_many >= of:
        return ""
    return _lines(first, first + how_many - 1, of)


def _file(attachment: dict[str, Any]) -> Iterator[PacketItem]:
    content = attachment.get("content")
    kind, held = text(mapping(content).get("type")), mapping(mapping(content).get("file"))
    label, path = _names(attachment, "filename")
    path = path or text(held.get("filePath"))
    cut = "cut short by the tool" if attachment.get("truncated") is True else ""
    if text(held.get("base64")):
        media = text(held.get("type")) or ("application/pdf" if kind == "pdf" else "")
        yield images.attached(0, label or path, held["base64"], media, source_path=path or None)
    elif kind == "notebook" and path and isinstance(held.get("cells"), list):
        said = f"a notebook of {counted(len(held['cells']), 'cell')}, recorded beside the message and not kept"
        yield replace(_named(label, path), delivery_mode="inline", detail=said)
    else:
        yield from _item(label, path, content if isinstance(content, str) else held.get("content"), _part(held), cut)


def _directory(attachment: dict[str, Any]) -> Iterator[PacketItem]:
    yield from _item(*_names(attachment, "path"), attachment.get("content"), "the listing of a folder")


def _edited(attachment: dict[str, Any]) -> Iterator[PacketItem]:
    yield from _item(*_names(attachment, "filename"), attachment.get("snippet"), "what had changed in a file")


def _memory(attachment: dict[str, Any]) -> Iterator[PacketItem]:
    content = attachment.get("content")
    label, path = _names(attachment, "path")
    path = path or text(mapping(content).get("path"))
    yield from _item(label, path, mapping(content).get("content"), _INSTRUCTIONS)


def _memories(key: str, said: str) -> _Reader:
    def read(attachment: dict[str, Any]) -> Iterator[PacketItem]:
        for memory in map(mapping, items(attachment.get(key))):
            yield from _item(*_names(memory, "path"), memory.get("content"), said)

    return read


def _selection(attachment: dict[str, Any]) -> Iterator[PacketItem]:
    where = _lines(count(attachment.get("lineStart")), count(attachment.get("lineEnd")))
    said = f"{where}, selected in an editor" if where else "selected in an editor"
    yield from _item(*_names(attachment, "filename"), attachment.get("content"), said)


def _plan(attachment: dict[str, Any]) -> Iterator[PacketItem]:
    yield from _item(*_names(attachment, "planFilePath"), attachment.get("planContent"), "the plan")


def _reference(*said: str) -> _Reader:
    def read(attachment: dict[str, Any]) -> Iterator[PacketItem]:
        yield from _item(*_names(attachment, "filename"), None, *said)

    return read


def _pdf(attachment: dict[str, Any]) -> Iterator[PacketItem]:
    pages = count(attachment.get("pageCount"))
    said = "a PDF" if pages is None else f"a PDF of {counted(pages, 'page')}"
    yield from _item(*_names(attachment, "filename"), None, said)


def _read_before(attachment: dict[str, Any]) -> Iterator[PacketItem]:
    # The record may hold the text again; what went to the model is the earlier one, which may have been another.
    for item in _reference()(attachment):
        yield replace(item, delivery_mode="session_history", detail=READ_BEFORE)


def _by_a_person(attachment: dict[str, Any]) -> bool:
    """The tool queues words of its own in the same way, such as that a task in the background has ended."""
    if attachment.get("isMeta") is True or text(attachment.get("commandMode")) not in {"", "prompt"}:
        return False
    origin = text(mapping(attachment.get("origin")).get("kind"))
    return origin in {"", "human"} and not _words(attachment).lstrip().startswith(_BY_THE_TOOL)


def _words(attachment: dict[str, Any]) -> str:
    prompt = attachment.get("prompt")
    if isinstance(prompt, str):
        return prompt
    blocks = [mapping(block) for block in items(prompt)]
    return "\n".join(words for block in blocks if block.get("type") == "text" and (words := text(block.get("text"))))


def _queued(attachment: dict[str, Any]) -> Iterator[PacketItem]:
    if _by_a_person(attachment):
        if words := _words(attachment):
            for item in _item("further message", "", words):
                yield replace(item, detail="recorded beside the message; its words are among the notes of the run")
        yield from in_message(items(attachment.get("prompt")))


_READERS: dict[str, _Reader] = {
    "file": _file,
    "directory": _directory,
    "edited_text_file": _edited,
    "nested_memory": _memory,
    "relevant_memories": _memories("memories", "a memory that the tool added"),
    "instructions": _memories("files", _INSTRUCTIONS),
    "selected_lines_in_ide": _selection,
    "opened_file_in_ide": _reference("open in an editor"),
    "compact_file_reference": _reference("read before the history was replaced by a summary"),
    "already_read_file": _read_before,
    "plan_file_reference": _plan,
    "pdf_reference": _pdf,
    "queued_command": _queued,
}
