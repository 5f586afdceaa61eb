"""Bringing sessions into the store, through the command that people use."""

import json
import tracemalloc
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from factory import importing, tracing
from factory.importers import pi
from factory.models import AgentAttempt, AgentAttemptInput, AgentToolCall, FactoryRun, RunNote
from tests.factory.importers.reading import PI_HEADER, SESSIONS, pi_message, write_lines

pytestmark = pytest.mark.django_db

RETRIES = SESSIONS / "pi/v3-retries/session.jsonl"


def bring(*paths: Path | str, **options: object) -> list[dict[str, object]]:
    out = StringIO()
    call_command("factory", "import", *map(str, paths), "--json", stdout=out, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def everything() -> list[object]:
    return [
        sorted(map(repr, model.objects.values_list()))
        for model in (FactoryRun, AgentAttempt, AgentAttemptInput, AgentToolCall, RunNote)
    ]


def test_the_report_accounts_for_every_record() -> None:  # IM-1
    for report in bring(RETRIES, SESSIONS / "pi/v3-malformed-and-unknown.jsonl"):
        assert report["records"] == sum(report[name] for name in ("shown", "hidden", "damaged", "unknown"))  # type: ignore[misc]


def test_importing_twice_changes_nothing() -> None:  # IM-2
    files = [path for path in SESSIONS.rglob("*") if path.suffix in {".jsonl", ".eval"} and "other" not in path.parts]
    bring(*files)
    before = everything()
    second = bring(*files)
    assert everything() == before
    assert all(report["attempts"]["new"] == report["attempts"]["changed"] == 0 for report in second)  # type: ignore[index]


def test_a_session_that_grew_gives_its_new_turns_and_completes_the_last(tmp_path: Path) -> None:  # IM-2
    records = [PI_HEADER, pi_message("1", None, "user")]
    path = write_lines(tmp_path / "s.jsonl", *records)
    [first] = bring(path)
    records += [pi_message("2", "1", "assistant", "done", stopReason="stop"), pi_message("3", "2", "user", "more")]
    [second] = bring(write_lines(path, *records))
    assert second["attempts"] == {"new": 1, "changed": 1, "unchanged": 0}
    assert second["runs"] == first["runs"]
    one, two = AgentAttempt.objects.order_by("number")
    assert (one.reply, one.state, two.previous_turn_attempt_id) == ("done", "succeeded", one.pk)


def test_coverage_is_never_complete_and_unknown_is_never_zero() -> None:  # IM-1
    bring(RETRIES)
    first, *later = AgentAttempt.objects.order_by("number")
    assert first.input_coverage == "partial"
    assert {attempt.input_coverage for attempt in later} == {"not_recorded"}
    assert {attempt.declared_input_count for attempt in (first, *later)} == {None}
    assert {item.artifact_status for item in AgentAttemptInput.objects.all()} == {"never_captured"}


def test_the_run_belongs_to_the_owner_named_and_two_owners_have_two(django_user_model: type) -> None:  # FA-12
    for name in ("ada", "ben"):
        django_user_model.objects.create_user(name)  # type: ignore[attr-defined]
        bring(RETRIES, owner=name)
    assert sorted(FactoryRun.objects.values_list("owner__username", flat=True)) == ["ada", "ben"]
    assert AgentAttempt.objects.count() == 6


def test_a_sub_agent_joins_the_run_of_its_parent() -> None:  # IM-1
    parent = SESSIONS / "claude-code/with-subagent/ae4a77f8-aedd-4bc1-888f-c94edc91af04.jsonl"
    reports = bring(parent)
    assert [report["runs"] for report in reports] == [reports[0]["runs"]] * 2
    assert sorted(AgentAttempt.objects.values_list("phase", flat=True)) == ["sub-agent", "turn"]


@pytest.mark.parametrize("name", ["other/opencode-stream-head.jsonl", "llm/logs-0.19.db", "no-such-file", "pi"])
def test_a_file_that_cannot_be_imported_fails_in_one_line_and_the_others_are_in(name: str) -> None:  # IM-1, SF-4
    with pytest.raises(CommandError) as refusal:
        bring(SESSIONS / name, RETRIES)
    assert len(str(refusal.value).splitlines()) == 1
    assert FactoryRun.objects.count() == 1


def test_an_import_names_its_page_and_says_who_will_not_see_it(tmp_path: Path) -> None:  # IM-1 FA-12
    User.objects.create_user("ada")
    path = write_lines(tmp_path / "s.jsonl", PI_HEADER, pi_message("1", None, "user", "x"))
    nobodys, hers = said_of(path), said_of(path, owner="ada")
    pages = [f"/factory/runs/{run.pk}" for run in FactoryRun.objects.order_by("pk")]
    assert nobodys[0].endswith(f"attempts: 1 new, 0 changed, 0 as before: {pages[0]}\n")
    assert "only operators see them" in nobodys[1] and "--owner" in nobodys[1]
    assert (hers[0].endswith(f"{pages[1]}\n"), hers[1]) == (True, "")


def test_a_file_that_brings_nothing_new_is_said_to(tmp_path: Path) -> None:  # IM-2
    path = write_lines(tmp_path / "s.jsonl", PI_HEADER, pi_message("1", None, "user", "x"))
    said_of(path)
    assert "nothing new (1 attempt as before): /factory/runs/" in said_of(path)[0]


def test_a_file_without_an_attempt_is_not_said_to_have_been_here(tmp_path: Path) -> None:  # IM-2
    path = write_lines(tmp_path / "s.jsonl", PI_HEADER)
    assert "attempts: 0 new, 0 changed, 0 as before: /factory/runs/" in said_of(path)[0]


def test_the_line_of_an_import_says_what_hidden_means_where_something_is(tmp_path: Path) -> None:  # IM-1
    label = {"type": "label", "id": "2", "parentId": "1", "timestamp": "2026-11-29T12:00:00Z"}
    records = [PI_HEADER, pi_message("1", None, "user", "x")]
    with_one, without = (write_lines(tmp_path / f"{len(more)}", *records, *more) for more in ([label], []))
    why = " (not part of the conversation, such as file snapshots or progress)"
    assert f"3 records: 2 shown, 1 hidden{why}, 0 damaged, 0 unknown; " in said_of(with_one)[0]
    assert "2 records: 2 shown, 0 hidden, 0 damaged, 0 unknown; " in said_of(without)[0]


def said_of(path: Path, **options: object) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("factory", "import", str(path), stdout=out, stderr=err, **options)
    return out.getvalue(), err.getvalue()


def test_the_name_of_a_file_cannot_rewrite_the_terminal(tmp_path: Path) -> None:  # SF-4
    odd = "a\x1b[2Kok\u202e05\n"
    write_lines(tmp_path / f"{odd}.jsonl", PI_HEADER, pi_message("1", None, "user", "x"))
    (tmp_path / f"{odd}.txt").write_text("nothing of the kind")
    out = StringIO()
    with pytest.raises(CommandError) as refusal:
        call_command("factory", "import", *map(str, tmp_path.iterdir()), stdout=out)
    for said in (out.getvalue().removesuffix("\n"), str(refusal.value)):
        assert "a␛[2KokRLO05␊." in said
        assert not set(odd[1:2] + "\u202e\n") & set(said)


def test_a_foreign_file_ends_the_command_with_exit_code_one(tmp_path: Path) -> None:  # IM-1
    path = tmp_path / "notes.txt"
    path.write_text("nothing of the kind")
    with pytest.raises(CommandError) as refusal:
        bring(path)
    assert refusal.value.returncode == 1
    assert "not supported" in str(refusal.value).splitlines()[-1]


@pytest.mark.django_db(transaction=True)
def test_an_import_that_fails_half_way_leaves_nothing_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:  # SF-4
    write, calls = tracing.FoundRun.write, iter([1, 2])

    def fail_on_the_third(self: tracing.FoundRun, *args: object, **kwargs: object) -> object:
        if next(calls, None) is None:
            raise DatabaseError("gone")
        return write(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(tracing.FoundRun, "write", fail_on_the_third)
    with pytest.raises(CommandError, match="gone"):
        bring(RETRIES)
    assert everything() == [[], [], [], [], []]


def test_the_source_is_never_written(tmp_path: Path) -> None:  # IM-1
    path = tmp_path / "s.jsonl"
    path.write_bytes(RETRIES.read_bytes())
    path.chmod(0o400)
    stat = path.stat()
    bring(path)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == (stat.st_mtime_ns, RETRIES.read_bytes())


def test_an_upload_may_not_be_a_trace_database(tmp_path: Path, django_user_model: type) -> None:  # SF-6
    from tests.factory.importers.test_formats import make_trace

    owner = django_user_model.objects.create_user("ada")  # type: ignore[attr-defined]
    path = make_trace(tmp_path / "t.db", "attempt_id TEXT", [("a",)])
    with path.open("rb") as file, pytest.raises(importing.ImportRefused, match="trace database"):
        importing.import_upload(file, "t.db", owner_id=owner.pk)
    assert FactoryRun.objects.count() == 0


def test_markup_in_every_string_of_a_record_is_stored_as_it_stands(tmp_path: Path) -> None:  # IM-1, AI-7
    mark = '<img src=x onerror="x()">\u202e\x1b[2K'
    call = pi_message(mark + "2", mark + "1", "assistant", mark, model=mark, provider=mark, stopReason="toolUse")
    call["message"]["content"].append({"type": "toolCall", "id": mark, "name": mark, "arguments": {mark: mark}})  # type: ignore[index]
    bring(
        write_lines(
            tmp_path / "s.jsonl",
            {**PI_HEADER, "id": mark, "cwd": mark},
            pi_message(mark + "1", None, "user", mark),
            call,
        )
    )
    attempt = AgentAttempt.objects.get()
    assert (attempt.user_prompt, attempt.reply, attempt.session_id) == (mark, mark, mark)
    assert attempt.tool_calls.get().name == mark


def test_a_large_file_is_read_without_holding_it(tmp_path: Path) -> None:  # IM-1
    path = tmp_path / "large.jsonl"
    with path.open("w") as file:
        file.write(json.dumps(PI_HEADER) + "\n")
        for number in range(300):
            parent = f"a{number - 1}" if number else None
            asked = pi_message(f"u{number}", parent, "user", "x" * 100_000)
            answered = pi_message(f"a{number}", f"u{number}", "assistant", "y" * 100_000, stopReason="stop")
            file.write(f"{json.dumps(asked)}\n{json.dumps(answered)}\n")
    tracemalloc.start()
    try:
        with path.open("rb") as source:
            [session] = pi.read(source, path)
            turns = sum(1 for _ in session.attempts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert turns == 300
    assert peak < path.stat().st_size / 20
