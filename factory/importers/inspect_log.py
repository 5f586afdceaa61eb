"""inspect logs: `.eval` (a zip) and `.json`, of every generation seen.

Format: src/inspect_ai/log/_log.py, log/_recorders/eval.py and log/_condense.py of UKGovernmentBEIS/inspect_ai. A
sample is one task; each entry of its `error_retries` is an attempt at it, and the sample itself is the last one.
Text that begins with `attachment://` stands in `attachments` under that key (a murmur3 hash: no content hash of ours).
New logs are compressed with zstd.
"""

import hashlib
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

from factory.importers import images, streaming
from factory.importers.found import Counts, FoundAttempt, FoundSession, FoundToolCall, NotSupportedError, TooLargeError
from factory.items import PacketItem
from factory.values import NO_OFFSET, count, items, lacks_offset, mapping, moment, text, total, written

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

FORMAT = "inspect log"
LARGEST_MEMBER = 128 * 1024**2  # a sample is read whole
LARGEST_TOTAL = 4 * 1024**3
LARGEST_RATIO = 1000  # a member that unpacks to more than this many times its size is a bomb, not a log
_DEEPEST = 20  # content within content: a message, its blocks, their text
_UNREADABLE = (
    *(ValueError, KeyError, RecursionError, EOFError, OSError),
    *(zipfile.BadZipFile, zlib.error, ZstdError, RuntimeError),  # RuntimeError: the member is encrypted
)
_SAMPLE = re.compile(r"samples/.*\.json\Z", re.DOTALL)
_FACTS = {("status",), ("error", "message"), *(("eval", name) for name in ("run_id", "task", "model", "created"))}
_PARTS = {path[0] for path in _FACTS if len(path) == 2}
_ENDS: dict[str, Literal["failed", "cancelled"]] = {"error": "failed", "cancelled": "cancelled"}


def read_zip(file: BinaryIO, path: Path) -> Iterator[FoundSession]:
    """The run of a `.eval` file. Raises NotSupportedError and TooLargeError."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise NotSupportedError("not supported: the zip file is damaged, or no inspect log") from None
    names = [info.filename for info in archive.infolist()]
    head_name = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
    if head_name is None:
        raise NotSupportedError("not supported: a zip file without an inspect log in it")
    _check_sizes(archive)
    raw = b""
    try:
        raw = archive.read(head_name)
        head = mapping(json.loads(raw))
    except NotImplementedError:
        raise NotSupportedError("not supported: this log is compressed in a way that Python cannot read") from None
    except _UNREADABLE:
        head = {}
    members = [info for info in archive.infolist() if _SAMPLE.match(info.filename)]
    members.sort(key=lambda info: info.filename)
    yield _session(head, raw, path, _zip_samples(archive, members), broken_off=head_name != "header.json")


def check_unpacked(file: BinaryIO, *, member: int, total: int) -> None:
    """Limits of the caller's own on what an archive unpacks to, for a file that may be one. Raises TooLargeError."""
    try:
        if zipfile.is_zipfile(file):
            _check_sizes(zipfile.ZipFile(file), member, total)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        pass  # whoever reads it says so
    finally:
        file.seek(0)


def _check_sizes(archive: zipfile.ZipFile, member: int = LARGEST_MEMBER, total: int = LARGEST_TOTAL) -> None:
    entries = archive.infolist()
    if sum(entry.file_size for entry in entries) > total:
        raise TooLargeError(f"the archive unpacks to more than {total // 1024**2:,} MiB")
    for entry in entries:
        if entry.file_size > member:
            raise TooLargeError(f"{entry.filename} unpacks to more than {member // 1024**2} MiB")
        if entry.file_size > LARGEST_RATIO * max(entry.compress_size, 1024):
            raise TooLargeError(f"{entry.filename} unpacks to more than {LARGEST_RATIO} times its size")


def _zip_samples(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> Iterator[object]:
    for member in members:
        try:
            yield json.loads(archive.read(member))
        except (*_UNREADABLE, NotImplementedError):
            yield None


def read_json(file: BinaryIO, path: Path) -> Iterator[FoundSession]:
    """The run of a `.json` log, one sample in memory at a time. Raises NotSupportedError."""
    try:
        head = _json_head(file)
    except (*streaming.BROKEN, streaming.TooDeepError):
        raise NotSupportedError("not supported: the JSON of this log is damaged") from None
    broken_off = text(head.get("status")) in {"", "started"}
    yield _session(head, written(head.get("eval")).encode(), path, _json_samples(file), broken_off=broken_off)


def _json_head(file: BinaryIO) -> dict[str, Any]:
    """The facts that stand beside the samples."""
    found = streaming.texts(file, _FACTS, until="samples")
    head: dict[str, Any] = {"status": found.get(("status",))}
    return head | {part: {path[-1]: said for path, said in found.items() if path[0] == part} for part in _PARTS}


def _json_samples(file: BinaryIO) -> Iterator[object]:
    try:
        yield from streaming.items_of(file, "samples")
    except (*streaming.BROKEN, streaming.TooDeepError):
        yield None


def _session(
    head: dict[str, Any], raw: bytes, path: Path, samples: Iterator[object], *, broken_off: bool
) -> FoundSession:
    facts = mapping(head.get("eval"))
    counts = Counts(shown=1)  # the header
    session = FoundSession(
        format=FORMAT,
        session_id=text(facts.get("run_id")) or f"unknown: {hashlib.sha256(raw).hexdigest() if raw else path.name}",
        attempts=iter(()),
        counts=counts,
        request=text(facts.get("task")),
        separate_tasks=True,
        started_at=moment(facts.get("created")),
        ended=None if broken_off else _ENDS.get(text(head.get("status"))),
        error=text(mapping(head.get("error")).get("message")),
    )
    if session.request:
        session.notes.append(f"The log's task: {session.request}")
    if lacks_offset(facts.get("created")):
        session.notes.append(NO_OFFSET)
    if broken_off:
        session.notes.append("The log breaks off: the run had not ended when it was written.")
    elif session.ended != "failed" and text(head.get("status")) not in {"success", ""}:
        session.notes.append(f"The run ended with status {head['status']}.")
    session.attempts = _attempts(samples, text(facts.get("model")), session)
    return session


def _attempts(samples: Iterator[object], model: str, session: FoundSession) -> Iterator[FoundAttempt]:
    seen: dict[str, int] = {}
    for sample in samples:
        if not isinstance(sample, dict):
            session.counts.damaged += 1
            session.notes.append("A sample could not be read.")
            continue
        name = f"sample {_id(sample.get('id'))}"
        if count(sample.get("epoch")) not in {None, 1}:
            name += f", epoch {sample['epoch']}"
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            name += f" ({seen[name]})"
        for found in _sample_attempts(sample, name, model):
            session.counts.shown += 1
            yield found


def _id(value: object) -> str:
    return value if isinstance(value, str) else written(value)


def _sample_attempts(sample: dict[str, Any], name: str, model: str) -> Iterator[FoundAttempt]:
    """The tries that failed, then the sample itself; each retry names the try before it."""
    base = text(sample.get("uuid")) or name
    lookup = mapping(sample.get("attachments"))
    task = _words(sample.get("input"), lookup)
    earlier: str | None = None
    for number, retry in enumerate(map(mapping, items(sample.get("error_retries"))), start=1):
        found = FoundAttempt(f"{base}#{number}", name, None, user_prompt=task, model=model, retry_of=earlier)
        found.state, found.failure = "failed", "provider"
        found.error = text(retry.get("message")) or "no reason recorded"
        _times(found, items(retry.get("events")))
        earlier = found.record_id
        yield found
    yield _last_attempt(sample, base, name, model, earlier, task, lookup)


def _last_attempt(
    sample: dict[str, Any], base: str, name: str, model: str, earlier: str | None, task: str, lookup: dict[str, Any]
) -> FoundAttempt:
    found = FoundAttempt(base, name, None, user_prompt=task, model=model, retry_of=earlier)
    messages = [mapping(message) for message in items(sample.get("messages"))]
    system = [_words(message.get("content"), lookup) for message in messages if message.get("role") == "system"]
    found.system_prompt = "\n".join(system) if system else None
    found.reply = _reply(sample, lookup)
    found.tool_calls = _tool_calls(messages, lookup)
    usages = [mapping(usage) for usage in mapping(sample.get("model_usage")).values()]
    cached = [_cached(usage) for usage in usages]
    known = [count(usage.get("input_tokens")) for usage in usages]
    within = sum(part for part, is_within in cached if part and is_within)
    whole = total(known)
    found.input_tokens = None if whole is None else max(0, whole - within)
    found.cached_input_tokens = total([part for part, _ in cached])
    found.output_tokens = total([count(usage.get("output_tokens")) for usage in usages])
    found.inputs = _inputs(sample, lookup)
    if error := mapping(sample.get("error")):
        found.state, found.failure = "failed", "provider"
        found.error = text(error.get("message")) or "no reason recorded"
    events = items(sample.get("events")) or items(mapping(sample.get("transcript")).get("events"))
    _times(found, events)
    return found


def _cached(usage: dict[str, Any]) -> tuple[int | None, bool]:
    """The input tokens of a cache, and whether the log counts them among the input tokens: some providers do, and only
    the total tells."""
    cached = total([count(usage.get(f"input_tokens_cache_{way}")) for way in ("read", "write")])
    parts = total([count(usage.get(name)) for name in ("input_tokens", "output_tokens")])
    return cached, bool(cached) and parts == count(usage.get("total_tokens"))


def _times(found: FoundAttempt, events: list[Any]) -> None:
    times = [at for event in events if (at := moment(mapping(event).get("timestamp")))]
    if times:
        found.started_at, found.ended_at = min(times), max(times)


def _reply(sample: dict[str, Any], lookup: dict[str, Any]) -> str | None:
    choices = items(mapping(sample.get("output")).get("choices"))
    if not choices:
        return None
    return _words(mapping(mapping(choices[0]).get("message")).get("content"), lookup)


def _words(value: object, lookup: dict[str, Any], depth: int = 0) -> str:
    """Text, content blocks or messages as text, attachments put back."""
    if isinstance(value, str):
        return (
            text(lookup.get(value.removeprefix("attachment://"), value)) if value.startswith("attachment://") else value
        )
    parts = []
    for block in map(mapping, items(value) if depth < _DEEPEST else []):
        inner = block.get("content") if "content" in block else block.get("text")
        if words := _words(inner, lookup, depth + 1):
            parts.append(words)
    return "\n".join(parts)


def _tool_calls(messages: list[dict[str, Any]], lookup: dict[str, Any]) -> list[FoundToolCall]:
    results = {text(message.get("tool_call_id")): message for message in messages if message.get("role") == "tool"}
    found = []
    for message in messages:
        for call in map(mapping, items(message.get("tool_calls"))):
            result = results.get(text(call.get("id")))
            found.append(
                FoundToolCall(
                    text(call.get("function")),
                    written(call.get("arguments")),
                    _words(result.get("content"), lookup) if result else None,
                    bool(result and result.get("error")),
                )
            )
    return found


def _inputs(sample: dict[str, Any], lookup: dict[str, Any]) -> list[PacketItem]:
    found: list[PacketItem] = []
    for message in map(mapping, items(sample.get("input"))):
        for block in map(mapping, items(message.get("content"))):
            kind = text(block.get("type"))
            if kind not in {"image", "audio", "video", "document"}:
                continue
            media, data = images.split_data_uri(_words(block.get(kind), lookup))
            found.append(images.attached(len(found) + 1, f"{kind} {len(found) + 1}", data, media))
    for name in items(sample.get("files")):
        found.append(
            PacketItem(
                seq=len(found) + 1,
                label=text(name) or f"file {len(found) + 1}",
                source_kind="explicit_attachment",
                delivery_mode="path_reference",
                source_path=text(name),
                detail="listed by the log; the bytes were not kept",
            )
        )
    return found
