"""What the pages say of a session that another tool recorded."""

import json
import zipfile
from pathlib import Path

import html5lib
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from factory.models import FactoryRun
from tests.factory.importers.reading import PI_HEADER, SESSIONS, claude_row, pi_message, write_lines

pytestmark = pytest.mark.django_db
HOSTILE = "</span><script>alert(1)</script>\u202e"


@pytest.fixture
def owner() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("ada", password="x"))
    return client


def bring(path: Path) -> FactoryRun:
    call_command("factory", "import", str(path), "--owner", "ada", "--json")
    return FactoryRun.objects.latest("pk")


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def text_of(html: str) -> str:
    return " ".join("".join(html5lib.parse(html, namespaceHTMLElements=False).find("body").itertext()).split())


def pi_call(name: str, arguments: dict[str, object]) -> dict[str, object]:
    record = pi_message("2", "1", "assistant", "Let me look.", usage={"input": 23_236, "output": 12})
    record["message"]["content"].append(  # type: ignore[index]
        {"type": "toolCall", "id": "c1", "name": name, "arguments": arguments}
    )
    return record


def test_the_list_of_tool_calls_says_what_each_was_called_with(owner: Client) -> None:  # FA-13
    run = bring(SESSIONS / "claude-code/tool-heavy.jsonl")
    calls = [call for attempt in run.attempts.all() for call in attempt.tool_calls.all()]
    commands = [
        (call.attempt.number, given["command"].split("\n")[0])
        for call in calls
        if "command" in (given := json.loads(call.arguments or "{}"))
    ]
    assert commands
    for number, command in commands:
        assert command[:60] in text_of(page(owner, f"/factory/runs/{run.pk}/attempts/{number}"))


def test_what_a_tool_was_called_with_is_text_and_its_secrets_are_hidden(owner: Client, tmp_path: Path) -> None:
    # AI-7 FA-13
    command = f"API_KEY=abcdef123456 {HOSTILE}"
    run = bring(
        write_lines(
            tmp_path / "s.jsonl", PI_HEADER, pi_message("1", None, "user"), pi_call("bash", {"command": command})
        )
    )
    html = page(owner, f"/factory/runs/{run.pk}/attempts/1")
    assert "<script>alert" not in html and "abcdef123456" not in html
    assert "API_KEY=••• " in html and '<span class="ctl" title="U+202E">RLO</span>' in html


def test_a_later_turns_exact_messages_say_that_the_sessions_history_is_not_among_them(
    owner: Client, tmp_path: Path
) -> None:  # AI-4
    records = [PI_HEADER, pi_message("1", None, "user"), pi_call("bash", {"command": "ls"})]
    run = bring(write_lines(tmp_path / "s.jsonl", *records, pi_message("3", "2", "user", "more")))
    base = f"/factory/runs/{run.pk}/attempts"
    said = "the provider's history of the session is not in it"
    assert said not in text_of(page(owner, f"{base}/1"))
    assert said in text_of(page(owner, f"{base}/2"))
    assert "23,236 tokens in are those of all model calls" in text_of(page(owner, f"{base}/1"))


def test_an_attempt_of_a_session_without_phases_is_named_by_its_number_alone(owner: Client) -> None:  # AI-1
    run = bring(SESSIONS / "pi/v3-resumed-two-turns.jsonl")
    html = page(owner, f"/factory/runs/{run.pk}/attempts/2")
    assert "<h1>Attempt 2</h1>" in html
    assert ", turn" not in text_of(html)
    assert "1 turn" not in text_of(page(owner, f"/factory/runs/{run.pk}"))


def test_a_session_file_is_brought_by_a_button_beside_the_title_also_where_there_is_no_run(owner: Client) -> None:
    # IM-1 VW-6
    html = page(owner, "/factory")
    title = html.index("<h1>Factory runs</h1>")
    assert html.index('<a class="button push" href="/factory?read#read">Read a session file</a>') < title + 200
    assert 'type="file"' not in html
    empty = html[html.index("No run yet.") :]
    assert '<a href="/factory?read#read">' in empty
    opened = page(owner, "/factory?read")
    assert opened.index('id="read"') < opened.index('type="file"') < opened.index('role="search"')


def test_a_file_that_was_refused_leads_back_to_the_form(owner: Client) -> None:  # SF-4
    response = owner.post("/factory/import", {})
    assert response.headers["Location"] == "/factory?read"


def test_lists_say_when_a_session_was_imported_beside_when_it_began(owner: Client) -> None:  # IM-1
    bring(SESSIONS / "pi/v3-resumed-two-turns.jsonl")
    for path in ("/factory", "/"):
        said = text_of(page(owner, path))
        assert "imported just now" in said, path
    assert "begun " in text_of(page(owner, "/factory"))


def test_when_an_older_site_imported_a_session_is_not_guessed(owner: Client) -> None:  # IM-1
    run = bring(SESSIONS / "pi/v3-resumed-two-turns.jsonl")
    FactoryRun.objects.filter(pk=run.pk).update(imported_at=None)
    for path in ("/factory", "/"):
        said = text_of(page(owner, path))
        assert "ago imported" in said and "imported just now" not in said, path


CAVEAT = "Caveat: The messages below were generated by the user while running local commands"
SUMMARY = {"type": "summary", "summary": "Fixing Everything At Once", "leafUuid": "9"}


def test_the_request_is_what_the_person_asked_first_and_a_summary_is_said_to_be_one(
    owner: Client, tmp_path: Path
) -> None:  # IM-1 FA-1
    ide = {"type": "text", "text": "<ide_opened_file>The user opened a.py</ide_opened_file>"}
    rows = [
        SUMMARY,
        claude_row("user", "1", None, f"{CAVEAT}. DO NOT respond"),
        claude_row("user", "2", "1", "<command-name>/mcp</command-name>"),
        claude_row("user", "3", "2", "<local-command-stdout>ok</local-command-stdout>"),
        claude_row("user", "4", "3", [ide, {"type": "text", "text": "Why is it slow?"}]),
        claude_row("assistant", "5", "4", [{"type": "text", "text": "The loop."}]),
    ]  # fmt: skip
    run = bring(write_lines(tmp_path / "s.jsonl", *rows))
    assert (run.task, run.state) == ("Why is it slow?", "succeeded")
    html = page(owner, f"/factory/runs/{run.pk}")
    assert '<p class="lead">Why is it slow?</p>' in html
    assert "A summary in the file, written by the tool: Fixing Everything At Once" in text_of(html)
    assert "Fixing" not in page(owner, "/factory")
    assert "<ide_opened_file>" in run.attempts.get(number=4).user_prompt  # the message itself stays exact


def test_a_session_whose_summary_was_once_taken_for_its_request_is_mended_by_bringing_it_again(
    tmp_path: Path,
) -> None:  # IM-2
    User.objects.create_user("ada")
    path = write_lines(tmp_path / "s.jsonl", SUMMARY, claude_row("user", "1", None, "Do it"))
    run = bring(path)
    FactoryRun.objects.update(task="Fixing Everything At Once")
    assert (bring(path).pk, bring(path).task) == (run.pk, "Do it")


def test_a_command_of_the_tool_reads_as_such_and_not_as_failed(owner: Client) -> None:  # FA-13 IM-1
    run = bring(SESSIONS / "claude-code/tool-heavy.jsonl")
    assert text_of(page(owner, f"/factory/runs/{run.pk}")).count("not asked of a model") == 2
    html = page(owner, f"/factory/runs/{run.pk}/attempts/2")
    assert "NOT ASKED OF A MODEL" in html and "FAILED" not in html
    assert "None is recorded: a command of the tool itself has none." in html


def test_a_session_of_local_commands_alone_neither_succeeded_nor_failed(owner: Client, tmp_path: Path) -> None:
    # IM-1 FA-13
    run = bring(write_lines(tmp_path / "s.jsonl", claude_row("user", "1", None, "<command-name>/clear</command-name>")))
    assert run.task == ""
    assert "badge-succeeded" not in page(owner, f"/factory/runs/{run.pk}")
    html = page(owner, "/factory")
    assert ">succeeded</td>" not in html and "/clear" not in html


def test_a_sessions_name_and_its_damage_stand_on_the_runs_page_each_on_one_line(
    owner: Client, tmp_path: Path
) -> None:  # IM-1 AI-7
    named = {"type": "session_info", "id": "9", "parentId": None, "name": "bad\x1b[31m\nname"}
    records = [PI_HEADER, pi_message("1", None, "user", "Do it"), named, "{broken", {"type": "no such kind", "id": "8"}]
    run = bring(write_lines(tmp_path / "s.jsonl", *records))
    assert run.task == "Do it"
    html = page(owner, f"/factory/runs/{run.pk}")
    sign = '<span class="ctl" title="U+000A">␊</span>'
    assert f'bad<span class="ctl" title="U+001B">␛</span>[31m{sign}name' in html
    assert "1 damaged record in the file." in html
    assert "1 record in the file of a kind that is not known here." in html


def test_forks_that_share_ids_and_a_name_are_runs_of_their_own(tmp_path: Path) -> None:  # IM-2 IM-1
    User.objects.create_user("ada")
    named = {"type": "session_info", "id": "9", "parentId": None, "name": "the same"}
    runs = [
        bring(
            write_lines(
                tmp_path / "s.jsonl",
                PI_HEADER | {"id": f"s-{n}", "parentSession": "/w/s-0.jsonl"},
                pi_message("1", None, "user", "Do it"),
                named,
            )
        )
        for n in (1, 2)
    ]
    assert len({run.pk for run in runs}) == 2
    assert [run.attempts.count() for run in runs] == [1, 1]
    assert all(run.notes.filter(text="Forked from /w/s-0.jsonl.").exists() for run in runs)


def test_a_message_with_a_picture_as_text_keeps_its_page_light(owner: Client, tmp_path: Path) -> None:  # PF-4 IM-1
    row = claude_row("user", "1", None, "look: " + "QUJD" * 400_000)
    run = bring(write_lines(tmp_path / "s.jsonl", row))
    for path in ("/factory", f"/factory/runs/{run.pk}", f"/factory/runs/{run.pk}/attempts/1"):
        assert len(page(owner, path)) < 150_000, path
    assert page(owner, f"/factory/runs/{run.pk}/attempts/1/user/raw").endswith("QUJD")


def test_bringing_a_session_again_leaves_the_time_of_the_first_import() -> None:  # IM-2
    User.objects.create_user("ada")
    first = bring(SESSIONS / "pi/v3-resumed-two-turns.jsonl").imported_at
    assert first is not None
    assert bring(SESSIONS / "pi/v3-resumed-two-turns.jsonl").imported_at == first


def inspect_log(path: Path, *samples: dict[str, object], **ended: object) -> Path:
    log = {"version": 2, "status": "success", "eval": {"run_id": "r", "task": "t", "model": "m"}, **ended}
    each = [
        {"id": number, "epoch": 1, "uuid": f"u{number}", "input": f"task {number}", "messages": [], **sample}
        for number, sample in enumerate(samples, 1)
    ]
    if path.suffix == ".json":
        path.write_text(json.dumps({**log, "samples": each}))
        return path
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(log))
        for sample in each:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    return path


TRIED_TWICE = {"error_retries": [{"message": "RuntimeError: boom"}]}
FAILED = {**TRIED_TWICE, "error": {"message": "RuntimeError: dead"}}


def test_a_log_in_which_a_sample_failed_for_good_is_no_success_however_the_last_one_ended(
    owner: Client, tmp_path: Path
) -> None:  # IM-1 FA-13
    run = bring(inspect_log(tmp_path / "log.json", FAILED, {}, TRIED_TWICE))
    said = text_of(page(owner, f"/factory/runs/{run.pk}"))
    assert run.state == "failed"
    assert "FAILED" in said and "1 of 3 samples failed." in said
    assert [note.text for note in run.notes.filter(is_error=True)] == ["1 of 3 samples failed."]
    assert '<span class="badge badge-failed">FAILED</span>' in page(owner, "/factory")


def test_a_sample_that_succeeded_when_it_was_tried_again_did_not_fail(owner: Client, tmp_path: Path) -> None:  # IM-1
    run = bring(inspect_log(tmp_path / "log.json", TRIED_TWICE, {}, TRIED_TWICE))
    assert (run.state, run.attempts.filter(state="failed").count()) == ("succeeded", 2)
    assert "samples failed" not in text_of(page(owner, f"/factory/runs/{run.pk}"))


def test_how_many_samples_failed_is_said_anew_when_a_log_has_grown(owner: Client, tmp_path: Path) -> None:  # IM-2
    bring(inspect_log(tmp_path / "log.json", FAILED, {}))
    run = bring(inspect_log(tmp_path / "log.json", FAILED, {}, FAILED, {}))
    assert [note.text for note in run.notes.filter(is_error=True)] == ["2 of 4 samples failed."]


BROKE = {"status": "error", "error": {"message": "OSError: no sandbox", "traceback": "…", "traceback_ansi": "…"}}


@pytest.mark.parametrize("name", ["log.json", "log.eval"])
@pytest.mark.parametrize("samples", [2, 0])
def test_a_log_that_says_that_it_failed_has_failed_though_no_sample_did(
    owner: Client, tmp_path: Path, name: str, samples: int
) -> None:  # IM-1 FA-13
    run = bring(inspect_log(tmp_path / name, *[{}] * samples, **BROKE))
    assert (run.state, run.attempts.count()) == ("failed", samples)
    assert run.task == ("task 1" if samples else "t")
    assert [note.text for note in run.notes.filter(is_error=True)] == ["The run as a whole failed: OSError: no sandbox"]
    for path in (f"/factory/runs/{run.pk}", "/factory", "/factory?state=failed", "/"):
        assert '<span class="badge badge-failed">FAILED</span>' in page(owner, path), path


def test_a_log_that_was_cancelled_is_cancelled_and_one_without_a_reason_says_so(
    owner: Client, tmp_path: Path
) -> None:  # IM-1
    stopped = bring(inspect_log(tmp_path / "a.json", {}, FAILED, status="cancelled"))
    assert stopped.state == "cancelled"
    assert [note.text for note in stopped.notes.filter(is_error=True)] == ["1 of 2 samples failed."]
    broke = bring(inspect_log(tmp_path / "b.json", {}, status="error", eval={"run_id": "other"}))
    assert [note.text for note in broke.notes.all()] == ["The run as a whole failed: no reason is recorded"]


def test_a_log_that_was_mended_since_is_no_longer_said_to_have_failed(owner: Client, tmp_path: Path) -> None:  # IM-2
    bring(inspect_log(tmp_path / "log.json", {}, **BROKE))
    run = bring(inspect_log(tmp_path / "log.json", {}, {}))
    assert (run.state, run.notes.filter(is_error=True).count()) == ("succeeded", 0)


def test_a_conversation_whose_later_turn_succeeded_did_not_fail(owner: Client, tmp_path: Path) -> None:  # IM-1
    failed = pi_message("2", "1", "assistant", "", stopReason="error", errorMessage="503")
    asked = [pi_message("1", None, "user", "x"), failed, pi_message("3", "2", "user", "again")]
    path = write_lines(
        tmp_path / "s.jsonl", PI_HEADER, *asked, pi_message("4", "3", "assistant", "So", stopReason="stop")
    )
    run = bring(path)
    assert [one.state for one in run.attempts.order_by("number")] == ["failed", "succeeded"]
    assert run.state == "succeeded"
