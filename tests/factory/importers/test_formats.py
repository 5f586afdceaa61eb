"""The traps of each session format, one by one."""

import base64
import hashlib
import json
import sqlite3
import time
import zipfile
from pathlib import Path

import pytest

from factory.importers import claude_code
from factory.importers.found import NotSupportedError, TooLargeError
from tests.factory.importers.reading import (
    PI_HEADER,
    SESSIONS,
    claude_row,
    pi_message,
    read,
    read_one,
    write_lines,
)


def test_a_provider_retry_is_no_turn_of_its_own() -> None:  # IM-1
    found = read_one(SESSIONS / "pi/v3-retries/session.jsonl")
    first, second, third = found.attempts
    assert [attempt.state for attempt in found.attempts] == ["succeeded"] * 3
    assert "503" in second.notes[0]
    assert (second.previous, third.previous) == (first.record_id, second.record_id)
    assert [attempt.turn_index for attempt in found.attempts] == [1, 2, 3]
    assert all(attempt.retry_of is None for attempt in found.attempts)  # never guessed


def test_a_file_given_by_name_is_inline_and_its_picture_is_an_attachment() -> None:  # IM-1
    first = read_one(SESSIONS / "pi/v3-retries/session.jsonl").attempts[0]
    task, shot = first.inputs
    assert (task.label, task.delivery_mode, task.sha256) == ("task.md", "inline", None)
    assert (shot.label, shot.delivery_mode, shot.media_type) == ("shot.png", "provider_attachment", "image/png")
    record = json.loads((SESSIONS / "pi/v3-retries/session.jsonl").read_text().split("\n")[3])
    picture = base64.b64decode(record["message"]["content"][1]["data"])
    assert (shot.size_bytes, shot.sha256) == (len(picture), hashlib.sha256(picture).hexdigest())
    assert {item.artifact_status for item in first.inputs} == {"never_captured"}


def test_what_was_asked_is_what_stands_beside_the_files_that_were_given(tmp_path: Path) -> None:  # IM-1
    given = '<file name="/w/task.md">Write it.</file>\n'
    for words, asked in ((f"{given}do the task", "do the task"), (given, None), ("as it is", "as it is")):
        [attempt] = read_one(
            write_lines(tmp_path / "a.jsonl", PI_HEADER, pi_message("1", None, "user", words))
        ).attempts
        assert (attempt.user_prompt, attempt.asked) == (words, asked)


@pytest.mark.parametrize(
    ("words", "asked", "files"),
    [
        ('<file name="a">x</file>one<file name="b">y</file> two', "one two", ["a", "b"]),
        ('<file name="a"><file name="b">y</file></file>', "</file>", ["a"]),  # a beginning goes with the next end
        ('<file name="a">x</file> and <file name="b">', 'and <file name="b">', ["a"]),
        ("no</file>", "no</file>", []),
    ],
)
def test_a_file_in_a_message_ends_with_the_next_end(tmp_path: Path, words: str, asked: str, files: list[str]) -> None:
    # IM-1
    path = write_lines(tmp_path / "a.jsonl", PI_HEADER, pi_message("1", None, "user", words))
    [attempt] = read_one(path).attempts
    assert (attempt.asked, [item.source_path for item in attempt.inputs]) == (asked, files)


def test_beginnings_of_files_that_never_end_are_not_gone_over_for_ever(tmp_path: Path) -> None:  # IM-1 SF-6
    path = write_lines(
        tmp_path / "a.jsonl", PI_HEADER, pi_message("1", None, "user", '<file name="a">' * 60_000 + "do it")
    )
    began = time.process_time()
    [attempt] = read_one(path).attempts
    assert (attempt.inputs, attempt.asked) == ([], attempt.user_prompt)
    assert time.process_time() - began < 20  # it took minutes


def test_a_compaction_is_said_on_the_turn_before_it() -> None:  # IM-1
    found = read_one(SESSIONS / "pi/v3-compaction.jsonl")
    said = [
        attempt.turn_index
        for attempt in found.attempts
        if any("replaced by a summary" in note for note in attempt.notes)
    ]
    assert said == [6]
    assert any(note.startswith("Forked from") for note in found.session.notes)
    assert "The session's name: slugify <b>demo</b>" in found.session.notes


def test_an_aborted_and_a_failed_reply_end_as_what_they_were() -> None:  # IM-1
    states = [attempt.state for attempt in read_one(SESSIONS / "pi/v1-linear-head.jsonl").attempts]
    assert states[0] == "cancelled"
    assert {"cancelled", "succeeded", "failed"} == set(states)


def test_a_broken_first_line_loses_the_session_id_and_nothing_else(tmp_path: Path) -> None:  # IM-1
    path = write_lines(
        tmp_path / "a.jsonl", "{broken", pi_message("1", None, "user"), pi_message("2", "1", "assistant")
    )
    found = read_one(path)
    assert len(found.attempts) == 1
    assert found.session.counts.damaged == 1
    assert found.session.session_id.startswith("unknown: ")
    assert found.attempts[0].session_id is None


def test_an_unfinished_last_line_is_being_written_and_not_damaged(tmp_path: Path) -> None:  # IM-1
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(PI_HEADER) + "\n" + json.dumps(pi_message("1", None, "user")) + '\n{"type":"mess')
    found = read_one(path)
    assert found.session.counts.damaged == 0
    assert any("still being written" in note for note in found.session.notes)
    assert found.attempts[0].error == "no reply is recorded"


def test_a_line_separator_inside_text_is_no_line_end(tmp_path: Path) -> None:  # IM-1
    text = json.dumps(pi_message("1", None, "user", "one\u2028two\u2029three"), ensure_ascii=False)
    assert (
        read_one(write_lines(tmp_path / "a.jsonl", PI_HEADER, text)).attempts[0].user_prompt
        == "one\u2028two\u2029three"
    )


def test_a_torn_line_that_ends_in_a_whole_record_gives_both(tmp_path: Path) -> None:  # IM-1
    torn = '{"type":"message","id":"0","mess' + json.dumps(pi_message("1", None, "user", "kept"))
    holes = "\x00" * 40 + json.dumps(pi_message("2", "1", "assistant", "also kept"))
    found = read_one(write_lines(tmp_path / "a.jsonl", PI_HEADER, torn, holes))
    assert (found.session.counts.damaged, found.session.counts.shown) == (2, 3)
    assert (found.attempts[0].user_prompt, found.attempts[0].reply) == ("kept", "also kept")


def test_half_a_surrogate_pair_is_kept(tmp_path: Path) -> None:  # IM-1
    line = json.dumps(pi_message("1", None, "user", "\ud83d"))
    assert read_one(write_lines(tmp_path / "a.jsonl", PI_HEADER, line)).attempts[0].user_prompt == "\ud83d"


def test_a_result_before_its_call_is_paired_by_id_and_a_missing_one_is_none(tmp_path: Path) -> None:  # IM-1
    result = pi_message("2", "1", "toolResult", "early", toolCallId="c1")
    call = pi_message("3", "2", "assistant", stopReason="toolUse")
    call["message"]["content"] = [  # type: ignore[index]
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "x"}},
        {"type": "toolCall", "id": "c2", "name": "<img src=x>"},
    ]
    found = read_one(write_lines(tmp_path / "a.jsonl", PI_HEADER, pi_message("1", None, "user"), result, call))
    [attempt] = found.attempts
    assert [(call.name, call.output) for call in attempt.tool_calls] == [("read", "early"), ("<img src=x>", None)]
    assert attempt.state == "failed"


def test_a_fork_of_the_tree_follows_its_parent_and_not_the_clock(tmp_path: Path) -> None:  # IM-1
    records = [pi_message("1", None, "user"), pi_message("2", "1", "assistant", stopReason="stop")]
    records += [pi_message("3", "2", "user", "one way"), pi_message("4", "2", "user", "another way")]
    records += [pi_message("5", "3", "assistant", "late, on the first branch", stopReason="stop")]
    found = read_one(write_lines(tmp_path / "a.jsonl", PI_HEADER, *records))
    first, one, another = found.attempts
    assert (one.previous, another.previous) == (first.record_id, first.record_id)
    assert (one.reply, another.reply) == ("late, on the first branch", None)


def test_a_session_of_two_streams_keeps_two_turns() -> None:  # IM-2
    names = ["run1-initial", "run2-parse-retry", "run3-gate-retry"]
    ids = {read_one(SESSIONS / f"pi/v3-retries/{name}.stdout.jsonl").attempts[0].record_id for name in names}
    assert len(ids) == 3


def test_a_sub_agents_file_names_its_parent_and_its_own_name_is_its_id() -> None:  # IM-1
    parent = SESSIONS / "claude-code/with-subagent/ae4a77f8-aedd-4bc1-888f-c94edc91af04.jsonl"
    [child] = claude_code.subagent_files(parent)
    found = read_one(child)
    assert found.session.session_id == parent.stem
    assert [(attempt.session_id, attempt.phase) for attempt in found.attempts] == [("agent-aac57f5", "sub-agent")]


def test_a_file_that_begins_in_the_middle_of_a_turn_says_so() -> None:  # IM-1
    [attempt] = read_one(SESSIONS / "claude-code/compact-boundary-slice.jsonl").attempts
    assert attempt.user_prompt is None
    assert "The message that began this turn is not in the file." in attempt.notes
    assert any("replaced by a summary" in note for note in attempt.notes)


def test_progress_rows_are_walked_through_though_they_are_hidden(tmp_path: Path) -> None:  # IM-1
    def row(kind: str, name: str, parent: str | None, **more: object) -> dict[str, object]:
        return {"type": kind, "uuid": name, "parentUuid": parent, "sessionId": "s", **more}

    path = write_lines(
        tmp_path / "s.jsonl",
        row("user", "1", None, message={"role": "user", "content": "first"}),
        row("progress", "2", "1"),
        row("assistant", "3", "2", message={"id": "m", "content": [{"type": "text", "text": "answer"}]}),
    )
    found = read_one(path)
    assert found.attempts[0].reply == "answer"
    assert not any("parent" in note for note in found.session.notes)


def test_a_command_of_the_tool_itself_is_not_asked_of_a_model_and_has_not_failed() -> None:  # IM-1 FA-13
    found = read_one(SESSIONS / "claude-code/tool-heavy.jsonl")
    assert [one.state for one in found.attempts] == ["cancelled", "not_asked", "not_asked", "cancelled"]
    command, printed = found.attempts[1:3]
    assert "/mcp" in (command.user_prompt or "") and "Reconnected to tidewave." in (printed.user_prompt or "")
    assert {(one.error, one.failure, one.reply) for one in (command, printed)} == {("", "", None)}


def test_a_call_without_a_result_is_not_said_to_end_a_file_that_goes_on() -> None:  # FA-13
    attempts = read_one(SESSIONS / "claude-code/edge-cases.jsonl").attempts
    assert attempts[4].error == "the last tool call has no result in the file"
    assert len(attempts) == 7


@pytest.mark.parametrize(
    "words",
    [
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
        "<command-message>clear</command-message><command-name>/clear</command-name>",
        "<local-command-stdout></local-command-stdout>",
        "Caveat: The messages below were generated by the user while running local commands. DO NOT respond to these",
        "<local-command-caveat>Caveat: The messages below were generated by the user</local-command-caveat>",
        "<bash-input>ls</bash-input>",
    ],
)
@pytest.mark.parametrize("as_block", [False, True])
def test_whatever_a_tool_keeps_of_its_own_commands_was_not_asked(
    tmp_path: Path, words: str, as_block: bool
) -> None:  # IM-1
    content = [{"type": "text", "text": words}] if as_block else words
    path = write_lines(tmp_path / "s.jsonl", claude_row("user", "1", None, content))
    [attempt] = read_one(path).attempts
    assert (attempt.state, attempt.user_prompt) == ("not_asked", words)


def test_what_the_tool_wrote_for_the_person_is_sent_and_is_not_what_was_asked(tmp_path: Path) -> None:  # IM-1
    words = "This session is being continued from a previous conversation that ran out of context."
    reply = claude_row("assistant", "2", "1", [{"type": "text", "text": "Going on."}])
    [attempt] = read_one(write_lines(tmp_path / "s.jsonl", claude_row("user", "1", None, words), reply)).attempts
    assert (attempt.state, attempt.user_prompt, attempt.asked) == ("succeeded", words, "")


def test_a_command_that_stands_for_a_prompt_was_asked(tmp_path: Path) -> None:  # IM-1
    command = claude_row("user", "1", None, "<command-name>/init</command-name><command-args>deep</command-args>")
    prompt = claude_row("user", "2", "1", [{"type": "text", "text": "Analyse this code base."}], isMeta=True)
    reply = claude_row("assistant", "3", "2", [{"type": "text", "text": "Done."}])
    [answered] = read_one(write_lines(tmp_path / "a.jsonl", command, prompt, reply)).attempts
    assert (answered.state, answered.asked, answered.reply) == ("succeeded", "/init deep", "Done.")
    [waiting] = read_one(write_lines(tmp_path / "b.jsonl", command, prompt)).attempts
    assert (waiting.state, waiting.error) == ("failed", "no reply is recorded")


def test_a_fork_names_the_session_that_it_came_from(tmp_path: Path) -> None:  # IM-1
    row = claude_row("user", "1", None, "go on", forkedFrom={"sessionId": "s-0", "messageUuid": "9"})
    assert "Forked from session s-0." in read_one(write_lines(tmp_path / "s.jsonl", row)).session.notes
    odd = claude_row("user", "1", None, "go on", forkedFrom="s-0")
    assert not any("Forked" in note for note in read_one(write_lines(tmp_path / "s.jsonl", odd)).session.notes)


def test_a_session_that_begins_with_dozens_of_other_rows_is_found(tmp_path: Path) -> None:  # IM-1
    snapshots = [{"type": "file-history-snapshot", "messageId": str(n), "snapshot": {}} for n in range(100)]
    found = read_one(write_lines(tmp_path / "s.jsonl", *snapshots, claude_row("user", "1", None, "hello")))
    assert (found.session.counts.hidden, found.attempts[0].user_prompt) == (100, "hello")


@pytest.mark.parametrize(("time", "said"), [("2026-11-29T21:06:45", True), ("2026-11-29T21:06:45Z", False)])
def test_times_without_a_zone_are_said_to_be_read_as_utc(tmp_path: Path, time: str, said: bool) -> None:  # IM-1 FA-11
    session = write_lines(tmp_path / "s.jsonl", claude_row("user", "1", None, "hello", timestamp=time))
    trace = make_trace(tmp_path / "t.db", "attempt_id TEXT, started_at TEXT", [("a", time), ("b", time)])
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"version": 2, "status": "success", "eval": {"created": time}, "samples": []}))
    for path in (session, trace, log):
        notes = read_one(path).session.notes
        assert notes.count("Times in this file name no zone; they are read as UTC.") == said, path


def test_a_file_without_times_has_none(tmp_path: Path) -> None:  # IM-1
    found = read_one(write_lines(tmp_path / "s.jsonl", claude_row("user", "1", None, "hello")))
    assert found.session.started_at is None
    assert {(one.started_at, one.ended_at) for one in found.attempts} == {(None, None)}


def test_totals_go_over_the_whole_file_whatever_was_compacted(tmp_path: Path) -> None:  # IM-1
    records = [PI_HEADER]
    for n in range(3):
        records += [
            pi_message(f"{n}a", f"{n - 1}c" if n else None, "user"),
            pi_message(f"{n}b", f"{n}a", "assistant", stopReason="stop", usage={"input": 10, "output": 1}),
            {"type": "compaction", "id": f"{n}c", "parentId": f"{n}b", "firstKeptEntryId": f"{n}b", "summary": "x"},
        ]
    found = read_one(write_lines(tmp_path / "a.jsonl", *records))
    assert [sum(one.input_tokens or 0 for one in found.attempts), len(found.attempts)] == [30, 3]


def test_two_samples_of_one_id_are_told_apart_by_name_and_record(tmp_path: Path) -> None:  # IM-1 IM-2
    samples = [{"id": 1, "epoch": 1, "input": words, "messages": []} for words in ("first", "second")]
    log = {"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t"}, "samples": samples}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    first, second = read_one(path).attempts
    assert (first.phase, second.phase) == ("sample 1", "sample 1 (2)")
    assert (first.user_prompt, second.user_prompt) == ("first", "second")
    assert first.record_id != second.record_id


def test_members_of_a_log_that_name_a_way_out_write_nothing(tmp_path: Path) -> None:  # SF-6 IM-1
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "log.eval"
    sample = json.dumps({"id": 1, "epoch": 1, "input": "task", "messages": []})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {"run_id": "r"}}))
        for name in ("../evil.json", "/tmp/evil.json", "samples/../../evil.json"):
            archive.writestr(name, sample)
    assert [one.user_prompt for one in read_one(path).attempts] == ["task"]
    assert [one.name for one in tmp_path.rglob("*")] == ["in", "log.eval"]


def test_a_picture_in_a_tool_result_is_named_and_not_printed(tmp_path: Path) -> None:  # IM-1
    data = base64.b64encode(b"x" * 3000).decode()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    path = write_lines(
        tmp_path / "s.jsonl",
        {"type": "user", "uuid": "1", "sessionId": "s", "message": {"content": "look"}},
        {"type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "s",
         "message": {"content": [{"type": "tool_use", "id": "t", "name": "x"}]}},
        {"type": "user", "uuid": "3", "parentUuid": "2", "sessionId": "s",
         "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": [picture]}]}},
    )  # fmt: skip
    assert read_one(path).attempts[0].tool_calls[0].output == "[image/png, 3,000 bytes, not shown]"


def test_an_inspect_retry_names_the_try_before_it(tmp_path: Path) -> None:  # IM-1
    sample = {
        "id": 1, "epoch": 1, "uuid": "u", "input": "task", "messages": [], "attachments": {},
        "error_retries": [{"message": "boom", "traceback": ""}], "error": {"message": "dead"},
    }  # fmt: skip
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "_journal/start.json", json.dumps({"version": 2, "eval": {"run_id": "r", "task": "t", "model": "m"}})
        )
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
        archive.writestr("samples/2_epoch_1.json", "{broken")
    found = read_one(path)
    first, last = found.attempts
    assert (first.error, last.error, last.retry_of) == ("boom", "dead", first.record_id)
    assert found.session.counts.damaged == 1
    assert any("breaks off" in note for note in found.session.notes)


@pytest.mark.parametrize(("total", "beside_the_cache"), [(48, 20), (30, 2), (None, 20)])
def test_an_inspect_logs_total_tells_whether_its_input_holds_what_came_from_a_cache(
    tmp_path: Path, total: int | None, beside_the_cache: int
) -> None:  # IM-1 FA-13
    cached = {"input_tokens_cache_read": 15, "input_tokens_cache_write": 3}
    usage = {"input_tokens": 20, "output_tokens": 10, "total_tokens": total, **cached}
    sample = {"id": 1, "epoch": 1, "input": "task", "messages": [], "model_usage": {"m": usage}}
    log = {"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t", "model": "m"}, "samples": [sample]}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    [attempt] = read_one(path).attempts
    assert (attempt.input_tokens, attempt.cached_input_tokens) == (beside_the_cache, 18)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:  # SF-6
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1.json", b" " * 20_000_000)
    with pytest.raises(TooLargeError, match="times its size"):
        read(path)


def make_trace(
    path: Path, columns: str, rows: list[tuple[object, ...]], inputs: list[tuple[object, ...]] | None = None
) -> Path:
    with sqlite3.connect(path) as db:
        db.execute(f"CREATE TABLE agent_attempts ({columns})")
        db.executemany(f"INSERT INTO agent_attempts VALUES ({','.join('?' * len(rows[0]))})", rows)
        if inputs is not None:
            db.execute(
                "CREATE TABLE agent_attempt_inputs "
                "(attempt_id, label, source_kind, delivery_mode, capture_status, sha256)"
            )
            db.executemany("INSERT INTO agent_attempt_inputs VALUES (?,?,?,?,?,?)", inputs)
    return path


def test_an_old_trace_without_the_new_columns_reads_as_not_recorded(tmp_path: Path) -> None:  # FA-11
    path = make_trace(
        tmp_path / "t.db", "attempt_id TEXT, user_prompt TEXT, state TEXT", [("a1", "do it", "succeeded")]
    )
    [read_run] = read(path)
    [attempt] = read_run.attempts
    assert attempt.user_prompt == "do it"
    assert (attempt.input_coverage, attempt.declared_input_count, attempt.send_kind) == ("not_recorded", None, None)  # type: ignore[attr-defined]
    assert attempt.inputs == []
    assert any("older trace" in note for note in read_run.session.notes)


def test_a_malformed_row_stays_visible_as_unavailable_with_a_reason(tmp_path: Path) -> None:  # FA-11
    path = make_trace(
        tmp_path / "t.db",
        "attempt_id TEXT, run_id TEXT, started_at, input_coverage",
        [("a1", "r1", "not a time", "complete")],
        [
            ("a1", "good", "prompt_file", "inline", "captured", "0" * 64),
            ("a1", "bad", "<b>", "inline", "captured", "zz"),
        ],
    )
    [read_run] = read(path)
    good, bad = read_run.attempts[0].inputs
    assert (good.capture_status, good.sha256) == ("captured", "0" * 64)
    assert (bad.capture_status, bad.sha256, bad.artifact_status) == ("unreadable", None, "never_captured")
    assert "<b>" not in (bad.detail or "")
    assert read_run.session.counts.damaged == 2


def test_the_source_database_is_not_written_and_nothing_appears_beside_it(tmp_path: Path) -> None:  # FA-11
    path = make_trace(tmp_path / "t.db", "attempt_id TEXT", [("a",)])
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
    before = path.read_bytes()
    read(path)
    assert path.read_bytes() == before
    assert sorted(other.name for other in tmp_path.iterdir()) == ["t.db"]


def test_a_view_named_like_the_table_is_not_trusted(tmp_path: Path) -> None:  # FA-11
    path = tmp_path / "t.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE VIEW agent_attempts AS SELECT 'a' AS attempt_id")
    with pytest.raises(NotSupportedError):
        read(path)


def test_a_database_cut_short_is_refused_in_one_line(tmp_path: Path) -> None:  # FA-11
    path = make_trace(tmp_path / "t.db", "attempt_id TEXT", [("a" * 5000,)] * 40)
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(NotSupportedError, match="cannot be read"):
        read(path)
