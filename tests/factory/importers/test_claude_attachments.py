"""What Claude Code put before the model beside a message: which of its records are inputs, and what is said of them."""

import base64
import hashlib
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from factory.importers.found import FoundAttempt
from factory.importing import FileReport, import_path
from factory.items import PacketItem
from factory.models import AgentAttempt, AgentAttemptInput, RunNote
from tests.factory.importers.reading import Read, claude_row, read_one, write_lines
from tests.factory.importers.test_hostile import spoilt, write_records
from tests.factory.visiting import page

ASKED = claude_row("user", "u", None, "Look at @a.py", timestamp="2026-11-29T12:00:00Z")
REPLY = claude_row("assistant", "r", "u", [{"type": "text", "text": "Seen."}], timestamp="2026-11-29T12:00:09Z")


def beside(name: str, parent: str | None, kind: object, **attachment: object) -> dict[str, Any]:
    """An attachment record of session `s`."""
    row = {"type": "attachment", "uuid": name, "parentUuid": parent, "sessionId": "s"}
    return row | {"timestamp": "2026-11-29T12:00:01Z", "attachment": {"type": kind, **attachment}}


def text_file(path: str, words: object, **more: object) -> dict[str, Any]:
    held = {"filePath": path, "content": words, "numLines": 1, "startLine": 1, "totalLines": 1, **more}
    return {"filename": path, "content": {"type": "text", "file": held}}


KINDS: list[dict[str, Any]] = [
    beside("1", "u", "file", displayPath="a.py", **text_file("/w/a.py", "x = 1\n")),
    beside("2", "u", "directory", path="/w/src", displayPath="src", content="- a.py"),
    beside("3", "u", "edited_text_file", filename="/w/b.py", snippet="3\tnew"),
    beside("4", "u", "nested_memory", path="/w/CLAUDE.md", content={"path": "/w/CLAUDE.md", "content": "Be kind."}),
    beside("5", "u", "selected_lines_in_ide", filename="/w/a.py", lineStart=3, lineEnd=9, content="x"),
    beside("6", "u", "queued_command", prompt=[{"type": "text", "text": "And b."}], commandMode="prompt"),
    beside("7", "u", "instructions", files=[{"path": "/w/CLAUDE.md", "type": "Project", "content": "Be kind."}]),
    beside("8", "u", "relevant_memories", memories=[{"path": "/m.md", "content": "Tea."}]),
    beside("9", "u", "plan_file_reference", planFilePath="/p.md", planContent="1. Go"),
    beside("10", "u", "already_read_file", displayPath="a.py", **text_file("/w/a.py", "x")),
    beside("11", "u", "pdf_reference", filename="/w/a.pdf", pageCount=12, fileSize=10),
]


def session(tmp_path: Path, *rows: object, name: str = "s.jsonl") -> Read:
    return read_one(write_lines(tmp_path / name, *map(json.dumps, rows)))


def attempt_with(tmp_path: Path, *rows: object) -> FoundAttempt:
    [attempt] = session(tmp_path, ASKED, *rows, REPLY).attempts
    return attempt


def item_of(tmp_path: Path, kind: object, **attachment: object) -> PacketItem:
    [item] = attempt_with(tmp_path, beside("1", "u", kind, **attachment)).inputs
    return item


def said(item: PacketItem) -> str:
    return (item.detail or "").rsplit("; ", 2)[0] if item.delivery_mode == "inline" else (item.detail or "")


def brought(path: Path) -> FileReport:
    [report] = import_path(path, owner_id=None)
    return report


def test_a_file_that_was_mentioned_is_an_input_with_the_size_and_hash_of_what_went_in(tmp_path: Path) -> None:  # IM-1
    words = "naïve = 1\n"
    found = session(tmp_path, ASKED, beside("1", "u", "file", displayPath="a.py", **text_file("/w/a.py", words)), REPLY)
    [item] = found.attempts[0].inputs
    raw = words.encode()
    assert (item.label, item.source_path, item.delivery_mode) == ("a.py", "/w/a.py", "inline")
    assert (item.size_bytes, item.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert (item.capture_status, item.artifact_status) == ("not_applicable", "never_captured")
    assert (found.session.counts.shown, found.session.counts.hidden) == (3, 0)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ({"startLine": 3, "numLines": 7, "totalLines": 40}, "lines 3–9 of 40"),
        ({"startLine": 40, "numLines": 1, "totalLines": 1400}, "line 40 of 1,400"),
        ({"startLine": 1, "numLines": 40, "totalLines": 40}, None),
        ({"startLine": 39, "numLines": 7, "totalLines": 40}, None),
        ({"startLine": "3", "numLines": [], "totalLines": -1}, None),
        ({"startLine": 0, "numLines": 0, "totalLines": 0}, None),
    ],
)
def test_a_part_of_a_file_is_said_to_be_one(
    lines: dict[str, object], expected: str | None, tmp_path: Path
) -> None:  # FA-5
    detail = item_of(tmp_path, "file", **text_file("/w/a.py", "x", **lines)).detail or ""
    assert detail.startswith(f"{expected}; recorded beside" if expected else "recorded beside")


def test_a_file_that_the_tool_cut_short_is_said_to_be(tmp_path: Path) -> None:  # FA-5
    assert said(item_of(tmp_path, "file", truncated=True, **text_file("/w/a.py", "x"))) == "cut short by the tool"


def test_text_may_stand_where_the_file_should(tmp_path: Path) -> None:  # IM-1
    item = item_of(tmp_path, "file", filename="/w/a.py", content="x")
    assert (item.delivery_mode, item.size_bytes) == ("inline", 1)


@pytest.mark.parametrize("content", [None, 7, [], {"type": "text"}, {"type": "text", "file": {"content": 7}}, "absent"])
def test_a_file_without_its_text_is_named_and_its_size_is_unknown(content: object, tmp_path: Path) -> None:  # AI-5
    given = {} if content == "absent" else {"content": content}
    item = item_of(tmp_path, "file", filename="/w/a.py", **given)
    assert (item.delivery_mode, item.size_bytes, item.sha256) == ("path_reference", None, None)
    assert item.source_path == "/w/a.py"


def test_a_picture_is_attached_and_a_notebook_has_no_size(tmp_path: Path) -> None:  # FA-10
    raw = b"\x89PNG\r\n\x1a\n"
    picture = {"type": "image", "file": {"base64": base64.b64encode(raw).decode(), "type": "image/png"}}
    paper = {"type": "pdf", "file": {"filePath": "/w/a.pdf", "base64": "AAAA", "originalSize": 3}}
    cells = {"type": "notebook", "file": {"filePath": "/w/a.ipynb", "cells": [{}, {}]}}
    names = ("/w/a.png", "/w/a.pdf", "/w/a.ipynb")
    rows = [beside(n, "u", "file", filename=n, content=c) for n, c in zip(names, (picture, paper, cells), strict=True)]
    image, pdf, notebook = attempt_with(tmp_path, *rows).inputs
    assert (image.delivery_mode, image.media_type, image.size_bytes) == ("provider_attachment", "image/png", len(raw))
    assert (image.source_path, image.sha256) == ("/w/a.png", hashlib.sha256(raw).hexdigest())
    assert (pdf.delivery_mode, pdf.media_type, pdf.size_bytes) == ("provider_attachment", "application/pdf", 3)
    assert (notebook.delivery_mode, notebook.size_bytes) == ("inline", None)
    assert "a notebook of 2 cells" in (notebook.detail or "")


@pytest.mark.parametrize(
    ("kind", "attachment", "words", "expected"),
    [
        ("directory", {"path": "/w/src", "content": "- a.py"}, "- a.py", "the listing of a folder"),
        ("edited_text_file", {"filename": "/w/src", "snippet": "3\tx"}, "3\tx", "what had changed in a file"),
        ("nested_memory", {"path": "/w/src", "content": {"content": "x"}}, "x", "instructions that the tool added"),
        ("nested_memory", {"content": {"path": "/w/src", "content": "x"}}, "x", "instructions that the tool added"),
        ("instructions", {"files": [{"path": "/w/src", "content": "x"}]}, "x", "instructions that the tool added"),
        ("relevant_memories", {"memories": [{"path": "/w/src", "content": "x"}]}, "x", "a memory that the tool added"),
        ("plan_file_reference", {"planFilePath": "/w/src", "planContent": "x"}, "x", "the plan"),
        (
            "selected_lines_in_ide",
            {"filename": "/w/src", "lineStart": 3, "lineEnd": 9, "content": "x"},
            "x",
            "lines 3–9, selected in an editor",
        ),
        (
            "selected_lines_in_ide",
            {"filename": "/w/src", "lineStart": 9, "lineEnd": 3, "content": "x"},
            "x",
            "selected in an editor",
        ),
    ],
)
def test_text_that_went_in_is_included_whatever_put_it_there(
    kind: str, attachment: dict[str, object], words: str, expected: str, tmp_path: Path
) -> None:  # IM-1 AI-2
    item = item_of(tmp_path, kind, **attachment)
    assert (item.delivery_mode, item.source_path, item.label) == ("inline", "/w/src", "/w/src")
    assert (item.size_bytes, item.sha256) == (len(words), hashlib.sha256(words.encode()).hexdigest())
    assert said(item) == expected


@pytest.mark.parametrize(
    ("kind", "attachment", "expected"),
    [
        ("opened_file_in_ide", {"filename": "/w/a"}, "open in an editor"),
        ("compact_file_reference", {"filename": "/w/a"}, "read before the history was replaced by a summary"),
        ("pdf_reference", {"filename": "/w/a", "pageCount": 12, "fileSize": 9}, "a PDF of 12 pages"),
        ("pdf_reference", {"filename": "/w/a", "pageCount": "12"}, "a PDF"),
        ("plan_file_reference", {"planFilePath": "/w/a"}, "the plan"),
        ("directory", {"path": "/w/a", "content": []}, "the listing of a folder"),
    ],
)
def test_a_file_that_is_only_named_is_available_by_path(
    kind: str, attachment: dict[str, object], expected: str, tmp_path: Path
) -> None:  # IM-1 AI-2
    item = item_of(tmp_path, kind, **attachment)
    assert (item.delivery_mode, item.source_path, item.size_bytes) == ("path_reference", "/w/a", None)
    assert item.detail == f"{expected}; named beside the message; no text of it is recorded"


def test_a_file_that_was_read_before_is_in_the_history_and_was_not_sent_again(tmp_path: Path) -> None:  # AI-5
    item = item_of(tmp_path, "already_read_file", **text_file("/w/a.py", "x"))
    assert (item.delivery_mode, item.size_bytes, item.source_path) == ("session_history", None, "/w/a.py")


def test_a_message_typed_while_the_model_worked_is_an_input_and_its_words_are_kept(tmp_path: Path) -> None:  # IM-1
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    queued = beside("1", "r", "queued_command", prompt=[{"type": "text", "text": "And b."}, picture])
    [attempt] = session(tmp_path, ASKED, REPLY, queued).attempts
    assert [(one.label, one.delivery_mode, one.size_bytes) for one in attempt.inputs] == [
        ("further message", "inline", 6),
        ("image 1", "provider_attachment", 3),
    ]
    assert "A further message, typed while the model worked: And b." in attempt.notes
    assert "its words are among the notes of the run" in (attempt.inputs[0].detail or "")
    assert attempt.user_prompt == "Look at @a.py"


def test_a_message_may_be_a_picture_alone(tmp_path: Path) -> None:  # IM-1
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    assert item_of(tmp_path, "queued_command", prompt=[picture]).delivery_mode == "provider_attachment"


@pytest.mark.parametrize(
    "attachment",
    [
        *({"type": "queued_command", "prompt": "done", **more} for more in ({"commandMode": "bash"}, {"isMeta": True})),
        {"type": "queued_command", "prompt": "<task-notification>done</task-notification>"},
        {"type": "queued_command", "prompt": "done", "commandMode": "task-notification"},
        {"type": "queued_command", "prompt": "done", "origin": {"kind": "task"}},
        *({"type": "queued_command", "prompt": prompt} for prompt in (None, "", 7, {}, [None], [{"text": "x"}])),
        *({"type": kind, "content": "x"} for kind in ("todo_reminder", "hook_success", "skill_listing", "later")),
        *({"type": "edited_image_file", "filename": "/w/a.png"}, {"type": "file"}, {"type": ["file"]}, {}),
        *({"type": "file", "filename": 7}, {"type": "file", "filename": "", "content": {"file": []}}),
        *({"type": "instructions", "files": "x"}, {"type": "instructions", "files": [None, {"path": ["/w"]}]}),
        *([], [{"type": "file"}], None, "file", 7),
    ],
)
def test_what_is_no_input_stays_hidden(attachment: object, tmp_path: Path) -> None:  # IM-1
    row = beside("1", "u", "x") | {"attachment": attachment}
    found = session(tmp_path, ASKED, row, REPLY)
    assert (found.attempts[0].inputs, found.attempts[0].notes) == ([], [])
    assert (found.session.counts.shown, found.session.counts.hidden) == (2, 1)


def test_inputs_stand_in_the_order_of_the_file_after_the_messages_own_pictures(tmp_path: Path) -> None:  # FA-5
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    asked = ASKED | {"message": {"content": [picture, {"type": "text", "text": "Look"}]}}
    [attempt] = session(tmp_path, asked, *KINDS, REPLY).attempts
    assert [item.seq for item in attempt.inputs] == list(range(1, len(KINDS) + 2))
    labels = ["image 1", "a.py", "src", "/w/b.py", "/w/CLAUDE.md", "/w/a.py", "further message", "/w/CLAUDE.md"]
    assert [item.label for item in attempt.inputs] == [*labels, "/m.md", "/p.md", "a.py", "/w/a.pdf"]


def test_an_input_belongs_to_the_turn_in_whose_chain_it_stands(tmp_path: Path) -> None:  # IM-1 FA-13
    second = claude_row("user", "u2", "r", "Go on")
    late = beside("1", "u", "opened_file_in_ide", filename="/by-parent")
    loose = beside("2", None, "opened_file_in_ide", filename="/by-place")
    reply = claude_row("assistant", "r2", "u2", [{"type": "text", "text": "Done."}])
    one, two = session(tmp_path, ASKED, REPLY, second, late, loose, reply).attempts
    assert [item.source_path for item in one.inputs] == ["/by-parent"]
    assert [item.source_path for item in two.inputs] == ["/by-place"]


def test_what_came_while_the_model_worked_is_said_to_have(tmp_path: Path) -> None:  # AI-2
    early, late = (beside(name, name, "opened_file_in_ide", filename=name) for name in ("u", "r"))
    [attempt] = session(tmp_path, ASKED, early | {"uuid": "1"}, REPLY, late | {"uuid": "2"}).attempts
    before, after = (item.detail or "" for item in attempt.inputs)
    assert before.startswith("open in an editor; ")
    assert after.startswith("while the model worked; open in an editor; ")


def test_what_stands_before_the_first_message_goes_with_it_and_makes_no_turn(tmp_path: Path) -> None:  # IM-1
    first = beside("0", None, "instructions", files=[{"path": "/w/CLAUDE.md", "content": "x"}])
    found = session(tmp_path, first, ASKED | {"parentUuid": "0"}, REPLY)
    [attempt] = found.attempts
    assert [item.source_path for item in attempt.inputs] == ["/w/CLAUDE.md"]
    assert (attempt.record_id, attempt.state, attempt.started_at.second if attempt.started_at else None) == (
        "u",
        "succeeded",
        0,
    )


def test_a_file_that_ends_before_its_first_message_shows_nothing(tmp_path: Path) -> None:  # IM-1
    progress = {"type": "progress", "uuid": "p", "sessionId": "s", "parentUuid": None}
    found = session(tmp_path, progress, *(row | {"parentUuid": "p"} for row in KINDS))
    assert (found.attempts, found.session.counts.shown, found.session.counts.hidden) == ([], 0, 1 + len(KINDS))


def test_what_was_put_beside_a_tools_own_command_goes_with_the_next_message(tmp_path: Path) -> None:  # IM-1 FA-13
    command = claude_row("user", "c", None, "<local-command-stdout>Compacted</local-command-stdout>")
    kept = beside("1", "c", "file", **text_file("/w/a.py", "x"))
    shell = claude_row("user", "c2", "1", "<bash-input>ls</bash-input>")
    rows = (command, kept, shell, ASKED | {"parentUuid": "c2"}, REPLY)
    first, second, asked = session(tmp_path, *rows).attempts
    assert (first.state, second.state, first.inputs, second.inputs) == ("not_asked", "not_asked", [], [])
    [item] = asked.inputs
    assert (item.seq, item.source_path) == (1, "/w/a.py")
    assert (item.detail or "").startswith("put into the session before this message; ")


def test_a_sub_agents_inputs_are_its_own(tmp_path: Path) -> None:  # IM-1
    rows = [row | {"isSidechain": True} for row in (ASKED, KINDS[0], REPLY)]
    found = session(tmp_path, *rows, name="agent-1.jsonl")
    assert (found.attempts[0].phase, len(found.attempts[0].inputs)) == ("sub-agent", 1)


@pytest.mark.django_db
def test_coverage_is_partial_and_a_second_import_changes_nothing(tmp_path: Path) -> None:  # IM-1 IM-2
    path = write_lines(tmp_path / "s.jsonl", ASKED, *KINDS, REPLY)
    report = brought(path)
    before = list(AgentAttemptInput.objects.values_list())
    again = brought(path)
    attempt = AgentAttempt.objects.get()
    assert (attempt.input_coverage, attempt.declared_input_count, attempt.inputs.count()) == (
        "partial",
        None,
        len(KINDS),
    )
    assert (report.new, again.new, again.changed, again.unchanged) == (1, 0, 0, 1)
    assert list(AgentAttemptInput.objects.values_list()) == before


@pytest.mark.django_db
def test_a_run_that_was_imported_without_them_has_them_once_it_is_brought_again(tmp_path: Path) -> None:  # IM-2
    path = write_lines(tmp_path / "s.jsonl", ASKED, *KINDS, REPLY)
    first = brought(path)
    AgentAttemptInput.objects.all().delete()
    AgentAttempt.objects.update(input_coverage="not_recorded")
    again = brought(path)
    assert (again.runs, again.new, again.changed) == (first.runs, 0, 1)
    assert (AgentAttempt.objects.get().input_coverage, AgentAttemptInput.objects.count()) == ("partial", len(KINDS))


@pytest.mark.django_db
def test_odd_texts_and_names_are_kept_as_they_are_and_open_nothing(tmp_path: Path, admin_client: Client) -> None:
    words, name = "a\0b\ud83d", "../../etc/\u202epasswd\0\ud83d<img src=x>\x1b[2K\n"  # AI-6 AI-7 SF-4
    brought(write_records(tmp_path / "s.jsonl", [ASKED, beside("1", "u", "file", **text_file(name, words)), REPLY]))
    item = AgentAttemptInput.objects.get()
    assert (item.source_path, item.size_bytes, item.artifact_status) == (name, 6, "never_captured")
    shown = page(admin_client, f"/factory/runs/{item.attempt.run_id}/attempts/1")
    assert "etc" in shown and "<img src=x>" not in shown and "\u202e" not in shown


@pytest.mark.django_db
def test_a_huge_text_is_hashed_and_not_stored(tmp_path: Path) -> None:  # SF-6
    brought(write_lines(tmp_path / "s.jsonl", ASKED, beside("1", "u", "file", **text_file("/a", "x" * 10**7)), REPLY))
    item = AgentAttemptInput.objects.get()
    assert (item.size_bytes, len(item.detail or "") < 200) == (10**7, True)


@pytest.mark.django_db
def test_ten_thousand_of_them_are_ten_thousand_inputs(tmp_path: Path) -> None:  # SF-6
    rows = [beside(f"f{n}", f"f{n - 1}" if n else "u", "file", **text_file(f"/w/{n}", "x")) for n in range(10_000)]
    began = time.monotonic()
    brought(write_lines(tmp_path / "s.jsonl", ASKED, *rows, REPLY))
    assert list(AgentAttemptInput.objects.values_list("source_path", flat=True)) == [f"/w/{n}" for n in range(10_000)]
    assert time.monotonic() - began < 60, "it takes no longer than its size"


def test_thousands_that_wait_for_a_message_are_handed_on_once(tmp_path: Path) -> None:  # SF-6
    rows: list[dict[str, Any]] = []
    for n in range(4000):
        rows.append(claude_row("user", f"c{n}", f"f{n - 1}" if n else None, "<bash-input>ls</bash-input>"))
        rows.append(beside(f"f{n}", f"c{n}", "opened_file_in_ide", filename=f"/{n}"))
    forks = [claude_row("user", f"u{n}", "f3999", "go on") for n in range(4000)]
    attempts = session(tmp_path, *rows, *forks).attempts
    assert sum(len(attempt.inputs) for attempt in attempts) == 4000


@pytest.mark.django_db
def test_values_of_another_kind_break_nothing_in_attachments(tmp_path: Path) -> None:  # IM-1 SF-4
    for seed in range(60):
        rows = json.loads(json.dumps([ASKED, *KINDS, REPLY]))
        path = write_records(tmp_path / f"{seed}.jsonl", spoilt(rows, random.Random(f"attachments {seed}")))
        for report in import_path(path, owner_id=None):
            assert report.counts.records == len(rows), seed
    for item in AgentAttemptInput.objects.all():
        assert (item.size_bytes is None) == (item.sha256 is None)
    assert not RunNote.objects.filter(is_error=True).exists()
