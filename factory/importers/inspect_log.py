"""inspect logs: `.eval` (a zip) and `.json`, of every generation seen.

Format: src/inspect_ai/log/_log.py, log/_recorders/eval.py and log/_condense.py of UKGovernmentBEIS/inspect_ai. A
sample is one task; each entry of its `error_retries` is an attempt at it, and the sample itself is the last one.
Text that begins with `attachment://` stands in `attachments` under that key (a murmur3 hash: no content hash of ours).
New logs are compressed with zstd, which Python's zipfile reads from 3.14 on.
"""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import ijson

from factory.importers import images
from factory.importers.found import Counts, FoundAttempt, FoundSession, FoundToolCall, NotSupportedError, TooLargeError
from factory.importers.values import count, items, mapping, moment, text, total
from factory.items import PacketItem

FORMAT = "inspect log"
LARGEST_MEMBER = 128 * 1024**2  # a sample is read whole
LARGEST_TOTAL = 4 * 1024**3
LARGEST_RATIO = 1000  # a member that unpacks to more than this many times its size is a bomb, not a log
_ZSTD = 93
_UNREADABLE = (ValueError, KeyError, zipfile.BadZipFile, RecursionError, EOFError, OSError)


def read_zip(file: BinaryIO, path: Path) -> Iterator[FoundSession]:
    """The run of a `.eval` file. Raises NotSupportedError and TooLargeError."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError):
        raise NotSupportedError("not supported: the zip file is damaged, or no inspect log") from None
    names = [info.filename for info in archive.infolist()]
    head_name = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
    if head_name is None:
        raise NotSupportedError("not supported: a zip file without an inspect log in it")
    _check_sizes(archive)
    try:
        head = mapping(json.loads(archive.read(head_name)))
    except NotImplementedError:
        raise NotSupportedError(
            "not supported: this inspect log is compressed with zstd, which Python reads from 3.14 on"
        ) from None
    except _UNREADABLE:
        head = {}
    members = sorted(name for name in names if name.startswith("samples/") and name.endswith(".json"))
    yield _session(head, path, _zip_samples(archive, members), broken_off=head_name != "header.json")


def _check_sizes(archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    if sum(entry.file_size for entry in entries) > LARGEST_TOTAL:
        raise TooLargeError(f"the archive unpacks to more than {LARGEST_TOTAL // 1024**3} GiB")
    for entry in entries:
        if entry.file_size > LARGEST_MEMBER:
            raise TooLargeError(f"{entry.filename} unpacks to more than {LARGEST_MEMBER // 1024**2} MiB")
        if entry.file_size > LARGEST_RATIO * max(entry.compress_size, 1024):
            raise TooLargeError(f"{entry.filename} unpacks to more than {LARGEST_RATIO} times its size")


def _zip_samples(archive: zipfile.ZipFile, members: list[str]) -> Iterator[object]:
    for name in members:
        try:
            yield json.loads(archive.read(name))
        except (*_UNREADABLE, NotImplementedError):
            yield None


def read_json(file: BinaryIO, path: Path) -> Iterator[FoundSession]:
    """The run of a `.json` log, one sample in memory at a time. Raises NotSupportedError."""
    try:
        head = _json_head(file)
    except (ijson.JSONError, UnicodeDecodeError):
        raise NotSupportedError("not supported: the JSON of this log is damaged") from None
    yield _session(head, path, _json_samples(file), broken_off=text(head.get("status")) in {"", "started"})


def _json_head(file: BinaryIO) -> dict[str, Any]:
    """The facts that stand beside the samples."""
    file.seek(0)
    head: dict[str, Any] = {}
    wanted = {"status", "eval.run_id", "eval.task", "eval.model", "eval.created"}
    for prefix, event, value in ijson.parse(file):
        if prefix in wanted and event == "string":
            target = head.setdefault("eval", {}) if "." in prefix else head
            target[prefix.rpartition(".")[2]] = value
        if prefix == "samples":
            break
    return head


def _json_samples(file: BinaryIO) -> Iterator[object]:
    file.seek(0)
    try:
        yield from ijson.items(file, "samples.item", use_float=True)
    except ijson.JSONError:
        yield None


def _session(head: dict[str, Any], path: Path, samples: Iterator[object], *, broken_off: bool) -> FoundSession:
    facts = mapping(head.get("eval"))
    counts = Counts(shown=1)  # the header
    session = FoundSession(
        format=FORMAT,
        session_id=text(facts.get("run_id")) or f"unknown: {path.name}",
        attempts=iter(()),
        counts=counts,
        title=text(facts.get("task")),
        started_at=moment(facts.get("created")),
    )
    if broken_off:
        session.notes.append("The log breaks off: the run had not ended when it was written.")
    elif text(head.get("status")) not in {"success", ""}:
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
        name = f"sample {sample.get('id')}" + (
            f", epoch {sample['epoch']}" if count(sample.get("epoch")) not in {None, 1} else ""
        )
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            name += f" ({seen[name]})"
        for found in _sample_attempts(sample, name, model):
            session.counts.shown += 1
            yield found


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
    found.input_tokens = total([count(usage.get("input_tokens")) for usage in usages])
    found.output_tokens = total([count(usage.get("output_tokens")) for usage in usages])
    found.inputs = _inputs(sample, lookup)
    if error := mapping(sample.get("error")):
        found.state, found.failure = "failed", "provider"
        found.error = text(error.get("message")) or "no reason recorded"
    events = items(sample.get("events")) or items(mapping(sample.get("transcript")).get("events"))
    _times(found, events)
    return found


def _times(found: FoundAttempt, events: list[Any]) -> None:
    times = [at for event in events if (at := moment(mapping(event).get("timestamp")))]
    if times:
        found.started_at, found.ended_at = min(times), max(times)


def _reply(sample: dict[str, Any], lookup: dict[str, Any]) -> str | None:
    choices = items(mapping(sample.get("output")).get("choices"))
    if not choices:
        return None
    return _words(mapping(mapping(choices[0]).get("message")).get("content"), lookup)


def _words(value: object, lookup: dict[str, Any]) -> str:
    """Text, content blocks or messages as text, attachments put back."""
    if isinstance(value, str):
        return (
            text(lookup.get(value.removeprefix("attachment://"), value)) if value.startswith("attachment://") else value
        )
    parts = []
    for block in map(mapping, items(value)):
        inner = block.get("content") if "content" in block else block.get("text")
        if words := _words(inner, lookup):
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
                    json.dumps(call.get("arguments"), ensure_ascii=False, default=str),
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
                label=text(name),
                source_kind="explicit_attachment",
                delivery_mode="path_reference",
                source_path=text(name),
                detail="listed by the log; the bytes were not kept",
            )
        )
    return found
