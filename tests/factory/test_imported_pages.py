"""What the pages say of a session that another tool recorded."""

import json
from pathlib import Path

import html5lib
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from factory.models import FactoryRun
from tests.factory.importers.reading import PI_HEADER, SESSIONS, pi_message, write_lines

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


def test_bringing_a_session_again_leaves_the_time_of_the_first_import() -> None:  # IM-2
    User.objects.create_user("ada")
    first = bring(SESSIONS / "pi/v3-resumed-two-turns.jsonl").imported_at
    assert first is not None
    assert bring(SESSIONS / "pi/v3-resumed-two-turns.jsonl").imported_at == first
