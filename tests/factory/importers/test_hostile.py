"""Files that somebody made to break an importer, or that a crash left behind: each is read as far as it goes, or
refused in one sentence."""

import json
import os
import random
import shutil
import sqlite3
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from factory import importing
from factory.importers import jsonl, streaming
from factory.importers.found import NotSupportedError
from factory.importing import FileReport, ImportRefused, import_path
from factory.models import AgentAttempt, FactoryRun, RunNote
from factory.reading import RunQuery, list_runs
from tests.factory.importers.reading import PI_HEADER, SESSIONS, pi_message, read, read_one, write_lines
from tests.factory.importers.test_formats import make_trace

CLAUDE = {"type": "user", "uuid": "1", "sessionId": "s", "message": {"content": "look"}}
EVAL = {"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t", "model": "m"}}


def brought(path: Path) -> FileReport:
    [report] = import_path(path, owner_id=None)
    return report


def refused(path: Path) -> str:
    with pytest.raises(ImportRefused) as refusal:
        list(import_path(path, owner_id=None))
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def zipped(path: Path, members: dict[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


# Values of every wrong kind ---------------------------------------------------------------------------------------

ODD: list[Any] = [
    *(None, True, -1, 0.5, 2**63 - 1, 2**70, 10**400, float("nan"), float("inf"), float("-inf")),
    *("", "\0", "\ud83d", "x" * 1000, "\u202e\x1b[2K\n", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"),
    *([], {}, [[]], [{}], {"type": []}, [None, "x", {"type": "text", "text": {}}], {"text": []}),
]


def places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from places(inner, (*path, key))


def with_odd(value: Any, path: tuple[Any, ...], odd: object) -> Any:
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_odd(value[path[0]], path[1:], odd)
    return copy


def spoilt(records: list[Any], chance: random.Random) -> list[Any]:
    """The records with a few values of another kind."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(records))
        path = chance.choice(list(places(records[at])))
        records[at] = with_odd(records[at], path, chance.choice(ODD))
    return records


def lines_of(name: str) -> list[Any]:
    lines = (SESSIONS / name).read_text(encoding="utf-8").split("\n")[:60]
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def write_eval(path: Path, records: list[Any]) -> Path:
    head, *samples = records
    return zipped(
        path,
        {"header.json": json.dumps(head)} | {f"samples/{at}.json": json.dumps(one) for at, one in enumerate(samples)},
    )


def eval_records(name: str) -> list[Any]:
    with zipfile.ZipFile(SESSIONS / name) as archive:
        names = [one for one in archive.namelist() if one.startswith("samples/")]
        return [json.loads(archive.read(one)) for one in ["header.json", *names]]


def write_records(path: Path, records: list[Any]) -> Path:
    return write_lines(path, *map(json.dumps, records))


SAMPLES: dict[str, tuple[Callable[[], list[Any]], Callable[..., Path]]] = {
    "pi": (lambda: lines_of("pi/v3-retries/session.jsonl"), write_records),
    "pi stream": (
        lambda: lines_of("pi/v3-retries/run2-parse-retry.stdout.jsonl"),
        write_records,
    ),
    "Claude Code": (
        lambda: lines_of("claude-code/tool-heavy.jsonl"),
        write_records,
    ),
    "web export": (
        lambda: [json.loads((SESSIONS / "claude-code/web-session.json").read_text())],
        write_records,
    ),
    "inspect": (lambda: eval_records("inspect/small-deflate.eval"), write_eval),
    "inspect json": (
        lambda: [json.loads((SESSIONS / "inspect/image-attachment.json").read_text())],
        write_records,
    ),
}


@pytest.mark.django_db
@pytest.mark.parametrize("kind", SAMPLES)
def test_values_of_another_kind_break_nothing(kind: str, tmp_path: Path) -> None:  # IM-1 SF-4
    records_of, write = SAMPLES[kind]
    for seed in range(12):
        path = write(tmp_path / f"{seed}.jsonl", spoilt(records_of(), random.Random(f"{kind} {seed}")))
        try:
            reports = list(import_path(path, owner_id=None))
        except ImportRefused as refusal:
            assert "\n" not in str(refusal), seed
        else:
            assert all(report.counts.records >= 0 for report in reports)


@pytest.mark.django_db
@pytest.mark.parametrize("depth", [300, 900, 960, 990, 5000, 100_000])
def test_nesting_beyond_reason_is_damage_and_no_crash(depth: int, tmp_path: Path) -> None:  # IM-1 SF-4
    deep = "[" * depth + "]" * depth
    call = pi_message("2", "1", "assistant", stopReason="toolUse")
    call["message"]["content"].append({"type": "toolCall", "id": "c", "name": "x", "arguments": ["DEEP"]})  # type: ignore[index]
    lines = [json.dumps(call).replace('"DEEP"', deep), json.dumps(pi_message("1", None, "user", "kept"))]
    brought(write_lines(tmp_path / "pi.jsonl", PI_HEADER, *reversed(lines)))
    assert AgentAttempt.objects.get().user_prompt == "kept"
    for name, text in {
        "log.json": json.dumps({**EVAL, "samples": ["DEEP"]}).replace('"DEEP"', deep),
        "head.json": json.dumps({**EVAL, "plan": "DEEP", "samples": []}).replace('"DEEP"', deep),
        "web.json": json.dumps({"loglines": ["DEEP"]}).replace('"DEEP"', deep),
        "foreign.json": deep,
    }.items():
        began = time.monotonic()
        path = tmp_path / name
        path.write_text(text)
        try:
            brought(path)
        except ImportRefused as refusal:
            assert "not supported" in str(refusal)
        assert time.monotonic() - began < 20, "it takes no longer than its size"


# Damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_files_cut_anywhere_are_read_or_refused(tmp_path: Path) -> None:  # IM-1 SF-4
    names = ["claude-code/web-session.json", "inspect/image-attachment.json", "inspect/small-deflate.eval"]
    names += ["pi/v3-retries/session.jsonl"]
    for name in names:
        whole = (SESSIONS / name).read_bytes()
        for tenth in range(1, 10):
            path = tmp_path / f"{tenth}-{Path(name).name}"
            path.write_bytes(whole[: len(whole) * tenth // 10])
            try:
                list(import_path(path, owner_id=None))
            except ImportRefused as refusal:
                assert "not supported" in str(refusal)


@pytest.mark.django_db
def test_an_archive_with_a_changed_byte_loses_one_sample(tmp_path: Path) -> None:  # IM-1
    samples = {f"samples/{n}.json": json.dumps({"id": n, "input": f"{n}" * 3000, "messages": []}) for n in range(3)}
    path = zipped(tmp_path / "log.eval", {"header.json": json.dumps(EVAL)} | samples)
    data = bytearray(path.read_bytes())
    at = data.index(b"samples/1.json") + len("samples/1.json")
    data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    report = brought(path)
    assert (report.counts.damaged, report.new) == (1, 2)


@pytest.mark.django_db
def test_a_log_compressed_with_zstd_and_damaged_is_read_as_far_as_it_goes(tmp_path: Path) -> None:  # IM-1
    whole = (SESSIONS / "inspect/retries-zstd.eval").read_bytes()
    member = whole.index(b"samples/ok_epoch_1.json") + len(b"samples/ok_epoch_1.json") + 20
    path = tmp_path / "log.eval"
    path.write_bytes(whole[:member] + b"\xff" * 30 + whole[member + 30 :])
    report = brought(path)
    assert report.counts.damaged == 1 and report.new


@pytest.mark.django_db
def test_an_encrypted_member_is_one_sample_that_cannot_be_read(tmp_path: Path) -> None:  # IM-1
    path = zipped(tmp_path / "log.eval", {"header.json": json.dumps(EVAL), "samples/1.json": "{}"})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.index(mark, data.index(b"header.json") if mark.startswith(b"PK\x03") else data.rindex(mark) - 1)
        data[at + offset] |= 1
    path.write_bytes(data)
    assert brought(path).counts.damaged == 1


@pytest.mark.django_db
def test_a_hash_line_of_the_same_name_twice_is_two_samples(tmp_path: Path) -> None:  # IM-1 IM-2
    path = tmp_path / "log.eval"
    with pytest.warns(UserWarning, match="Duplicate"):
        zipped_twice(path)
    first, second = brought(path), brought(path)
    assert (first.new, second.unchanged, second.changed) == (2, 2, 0)
    assert sorted(AgentAttempt.objects.values_list("user_prompt", flat=True)) == ["one", "two"]


def zipped_twice(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(EVAL))
        for words in ("one", "two"):
            archive.writestr("samples/1.json", json.dumps({"id": 1, "uuid": "same", "input": words}))


def test_a_damaged_line_is_not_gone_over_for_ever() -> None:  # IM-1 SF-6
    for line in (b'{"a":' * 400_000, b'x{"a":1}' * 300_000, b'{"a":"' + b'{"' * 800_000):
        began = time.process_time()
        found = list(jsonl.scan(BytesIO(line + b"\n")))
        assert [one.damaged for one in found] == [True]
        assert time.process_time() - began < 20, line[:12]


def test_a_record_after_a_long_torn_one_is_still_found() -> None:  # IM-1
    torn = json.dumps({"type": "message", "content": [{"type": "text", "text": "x" * 50}] * 2000})[:-700]
    file = BytesIO(f'{torn}{{"type":"message","id":"é"}}\n'.encode())
    damaged, record = jsonl.scan(file)
    assert (damaged.damaged, record.value) == (True, {"type": "message", "id": "é"})
    assert jsonl.read_at(file, record.offset, record.length) == record.value


def test_a_byte_order_mark_is_no_damage(tmp_path: Path) -> None:  # IM-1
    path = write_lines(tmp_path / "s.jsonl", PI_HEADER, pi_message("1", None, "user", "hello"))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    found = read_one(path)
    assert (found.session.session_id, found.session.counts.damaged) == ("s-1", 0)
    assert found.attempts[0].user_prompt == "hello"


# JSON as Python writes it ------------------------------------------------------------------------------------------


def log_with(**more: object) -> dict[str, object]:
    return {**EVAL, **more}


def test_not_a_number_in_a_log_costs_nothing_of_it(tmp_path: Path) -> None:  # IM-1
    scores = {"mean": float("nan"), "low": float("-inf"), "high": float("inf")}
    words = 'a text with NaN, -Infinity and a quote " \\ in it'
    samples = [{"id": n, "input": f"{words} {n}", "scores": scores if n == 40 else {}} for n in range(80)]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log_with(results=scores, samples=samples)))
    found = read_one(path)
    assert [one.user_prompt for one in found.attempts] == [f"{words} {n}" for n in range(80)]
    assert found.session.counts.damaged == 0
    assert found.session.session_id == "r"


@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_names_are_found_wherever_a_chunk_ends(monkeypatch: pytest.MonkeyPatch, size: int) -> None:  # IM-1
    monkeypatch.setattr(streaming, "_CHUNK", size)
    value = {"samples": [1.5, float("nan"), 'NaN"\\', float("-inf"), ["Infinity", float("inf")], "\\" * 40]}
    found = list(streaming.items_of(BytesIO(json.dumps(value).encode()), "samples"))
    assert found == [1.5, None, 'NaN"\\', None, ["Infinity", None], "\\" * 40]


# What no column holds ----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_names_and_numbers_that_no_column_holds(tmp_path: Path) -> None:  # IM-1 SF-4
    usage = {"input": 2**63 - 1, "output": 2**63 - 1, "cost": {"total": 999_999_999}}
    name = "m\0\ud83d" * 200
    replies = [
        pi_message(f"a{n}", "1", "assistant", "x", model=name, provider=name, usage=usage, stopReason="stop")
        for n in range(3)
    ]
    brought(write_lines(tmp_path / "s.jsonl", PI_HEADER, pi_message("1", None, "user", "x"), *replies))
    attempt = AgentAttempt.objects.get()
    assert attempt.model.startswith("m\\x00\\ud83d") and len(attempt.model) == 200
    assert (attempt.input_tokens, attempt.output_tokens, attempt.cost) == (None, None, None)


@pytest.mark.django_db
def test_a_list_adds_up_the_tokens_of_a_run_whatever_its_file_says(tmp_path: Path) -> None:  # IM-1 SF-4
    usage = {"input": 2**62, "cacheRead": 2**62, "output": 2**62}
    lines = [
        line
        for n in range(3)
        for line in (
            pi_message(f"u{n}", None, "user", "x"),
            pi_message(f"a{n}", f"u{n}", "assistant", "y", usage=usage, stopReason="stop"),
        )
    ]
    brought(write_lines(tmp_path / "s.jsonl", PI_HEADER, *lines))
    [row] = list_runs(User(is_staff=True, is_active=True), RunQuery()).rows
    assert (row.attempt_count, row.tokens_in, row.tokens_out) == (3, None, None)


@pytest.mark.django_db
def test_counts_beyond_the_columns_of_a_trace_are_not_known(tmp_path: Path) -> None:  # FA-11
    path = make_trace(
        tmp_path / "t.db",
        "attempt_id TEXT, turn_index, declared_input_count, input_tokens, state",
        [("a", 2**40, 2**62, 2**40, "succeeded")],
    )
    brought(path)
    attempt = AgentAttempt.objects.get()
    assert (attempt.turn_index, attempt.declared_input_count, attempt.input_tokens) == (None, None, 2**40)


# Whose file, and which session -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_two_sessions_without_an_id_are_two_whatever_their_files_are_called(tmp_path: Path) -> None:  # IM-2
    def session(folder: str, words: str, name: str = "session.jsonl") -> Path:
        (tmp_path / folder).mkdir(exist_ok=True)
        message = {"type": "message", "message": {"role": "user", "content": words}}
        return write_lines(tmp_path / folder / name, json.dumps(message))

    one, two = brought(session("a", "first")), brought(session("b", "second"))
    assert one.runs != two.runs
    again = brought(session("c", "first", "renamed.jsonl"))
    assert (again.runs, again.unchanged) == (one.runs, 1)
    assert sorted(AgentAttempt.objects.values_list("user_prompt", flat=True)) == ["first", "second"]
    assert set(AgentAttempt.objects.values_list("session_id", flat=True)) == {None}


@pytest.mark.django_db
def test_traces_are_told_apart_by_what_they_hold_and_not_by_their_name(tmp_path: Path) -> None:  # IM-2 FA-11
    for folder, words in (("a", "one"), ("b", "two")):
        (tmp_path / folder).mkdir()
        make_trace(
            tmp_path / folder / "trace.db", "run_id, user_prompt TEXT, state", [(1, words, "ok"), (2, words, "ok")]
        )
    reports = [brought(tmp_path / folder / "trace.db") for folder in "ab"]
    assert FactoryRun.objects.count() == 4
    shutil.copy(tmp_path / "a/trace.db", tmp_path / "copy.db")
    again = brought(tmp_path / "copy.db")
    assert (again.runs, again.unchanged) == (reports[0].runs, 2)


@pytest.mark.django_db
def test_ids_of_a_trace_that_are_numbers_or_no_text_lose_no_row(tmp_path: Path) -> None:  # FA-11
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE agent_attempts (attempt_id TEXT, run_id, user_prompt TEXT)")
        db.execute("CREATE TABLE agent_attempt_inputs (attempt_id TEXT, label TEXT)")
        for run_id, attempt in (
            (1, "'a'"),
            ("'1'", "'b'"),
            ("CAST(X'ff' AS TEXT)", "CAST(X'fe' AS TEXT)"),
            ("NULL", "'c'"),
        ):
            db.execute(f"INSERT INTO agent_attempts VALUES ({attempt}, {run_id}, 'words')")
            db.execute(f"INSERT INTO agent_attempt_inputs VALUES ({attempt}, 'its input')")
        db.execute("INSERT INTO agent_attempt_inputs VALUES ('nobody', 'lost')")
    report = brought(path)
    assert (report.new, len(report.runs)) == (4, 4)
    assert [one.inputs.count() for one in AgentAttempt.objects.all()] == [1, 1, 1, 1]
    assert RunNote.objects.filter(text__contains="name no attempt: 1").exists()


@pytest.mark.django_db
def test_the_same_attempt_id_twice_is_two_attempts(tmp_path: Path) -> None:  # FA-11 IM-2
    path = make_trace(tmp_path / "t.db", "attempt_id TEXT, user_prompt TEXT", [("a", "one"), ("a", "two")])
    assert brought(path).new == 2
    assert brought(path).unchanged == 2


@pytest.mark.django_db
def test_a_trace_that_is_damaged_further_on_leaves_nothing_and_is_refused(tmp_path: Path) -> None:  # FA-11 SF-4
    rows = [(f"{n:04}", "x" * 3000) for n in range(400)]
    path = make_trace(tmp_path / "t.db", "attempt_id TEXT PRIMARY KEY, user_prompt TEXT", rows)
    data = bytearray(path.read_bytes())
    data[600_000:700_000] = bytes(random.Random(1).randbytes(100_000))
    path.write_bytes(data)
    assert "cannot be read" in refused(path)
    assert not AgentAttempt.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_one_file_brought_several_times_at_once_is_one_run(tmp_path: Path) -> None:  # IM-2 SF-4
    records = [PI_HEADER, *(pi_message(str(n), str(n - 1) if n else None, "user", "x") for n in range(30))]
    path = write_lines(tmp_path / "s.jsonl", *records[:10])
    brought(path)
    write_lines(path, *records)
    done: list[FileReport | Exception] = []

    def bring() -> None:
        try:
            done.append(brought(path))
        except Exception as error:
            done.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.new for one in done if isinstance(one, FileReport)) == [0, 0, 0, 21]
    assert [one.number for one in AgentAttempt.objects.order_by("number")] == list(range(1, 31))


@pytest.mark.django_db
def test_what_a_file_no_longer_says_is_no_longer_said(tmp_path: Path) -> None:  # IM-2
    path = tmp_path / "s.jsonl"
    message = json.dumps(pi_message("1", None, "user"))
    path.write_text(f"{json.dumps(PI_HEADER)}\n{message}\n" + '{"type":"mess')
    brought(path)
    assert RunNote.objects.filter(text__contains="still being written").exists()
    brought(write_lines(path, PI_HEADER, message, pi_message("2", "1", "assistant", stopReason="stop")))
    assert not RunNote.objects.filter(text__contains="still being written").exists()


@pytest.mark.django_db
def test_a_run_ends_as_its_session_and_not_as_its_sub_agent(tmp_path: Path) -> None:  # IM-1
    reply = {"type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "s"}
    path = write_lines(
        tmp_path / "s.jsonl", CLAUDE, {**reply, "message": {"content": [{"type": "text", "text": "ok"}]}}
    )
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    write_lines(tmp_path / "s/subagents/agent-a.jsonl", {**CLAUDE, "isSidechain": True})  # it was never answered
    assert len(list(import_path(path, owner_id=None))) == 2
    assert FactoryRun.objects.get().state == "succeeded"
    assert sorted(AgentAttempt.objects.values_list("state", flat=True)) == ["failed", "succeeded"]


@pytest.mark.django_db
def test_a_sub_agents_file_that_cannot_be_read_costs_no_other(tmp_path: Path) -> None:  # IM-1 SF-4
    path = write_lines(tmp_path / "s.jsonl", CLAUDE)
    folder = tmp_path / "s" / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").touch()
    os.mkfifo(folder / "agent-2.jsonl")
    write_lines(folder / "agent-3.jsonl", {**CLAUDE, "isSidechain": True})
    reports = list(import_path(path, owner_id=None))
    assert [(one.file, bool(one.error)) for one in reports] == [
        ("s.jsonl", False),
        ("agent-1.jsonl", True),
        ("agent-3.jsonl", False),
    ]


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "folder", "nul"])
def test_what_is_no_file_is_refused_and_never_waited_for(kind: str, tmp_path: Path) -> None:  # IM-1 SF-4
    import socket

    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.relpath(path))
        listener.close()
    elif kind == "folder":
        path.mkdir()
    path = {"device": Path("/dev/zero"), "nul": Path("a\0b")}.get(kind, path)
    assert refused(path)


@pytest.mark.django_db
def test_an_upload_of_a_trace_is_refused_before_any_of_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # SF-6
    owner = User.objects.create_user("ada")
    path = make_trace(tmp_path / "t.db", "attempt_id TEXT", [("a",)])
    monkeypatch.setattr("factory.importers.trace_database.sqlite3.connect", lambda *_, **__: pytest.fail("opened"))
    with path.open("rb") as file, pytest.raises(ImportRefused, match="trace database"):
        importing.import_upload(file, "..", owner_id=owner.pk)


def test_a_trace_that_is_too_large_is_refused_before_it_is_copied(tmp_path: Path) -> None:  # SF-6
    path = make_trace(tmp_path / "t.db", "attempt_id TEXT", [("a",)])
    with path.open("r+b") as file:
        file.truncate(3 * 1024**3)
    before = shutil.disk_usage(tmp_path).used
    assert "at most" in refused(path)
    assert shutil.disk_usage(tmp_path).used - before < 100 * 1024**2


def test_a_web_export_that_is_cut_short_is_refused(tmp_path: Path) -> None:  # IM-1 SF-4
    path = tmp_path / "web.json"
    path.write_bytes((SESSIONS / "claude-code/web-session.json").read_bytes()[:-20])
    with pytest.raises(NotSupportedError, match="cut short"):
        read(path)
