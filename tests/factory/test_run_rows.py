"""What the list and a run's page say of each attempt: what it was asked, of which model, with how many tokens."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import html5lib
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from factory.models import AgentAttempt, FactoryRun
from tests.factory.importers.reading import PI_HEADER, SESSIONS, claude_row, pi_message, write_lines

pytestmark = pytest.mark.django_db
Page = Callable[[str], str]
HOSTILE = "</td><script>alert(1)</script>\u202e"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password="x")


@pytest.fixture
def page(ada: User) -> Page:
    client = Client()
    client.force_login(ada)

    def page(path: str) -> str:
        response = client.get(path)
        assert response.status_code == 200, path
        return response.content.decode()

    return page


@pytest.fixture
def run(ada: User) -> FactoryRun:
    return FactoryRun.objects.create(
        owner=ada, workflow="ask", provider="pi", state="failed", started_at=timezone.now()
    )


def add(run: FactoryRun, number: int, **facts: Any) -> AgentAttempt:
    values = {"phase": "turn", "provider": "pi", "state": "succeeded"} | facts
    return AgentAttempt.objects.create(attempt_id=f"{run.pk:016x}{number:016x}", run=run, number=number, **values)


def bring(path: Path) -> FactoryRun:
    call_command("factory", "import", str(path), "--owner", "ada", "--json")
    return FactoryRun.objects.latest("pk")


def text_of(html: str) -> str:
    return " ".join("".join(html5lib.parse(html, namespaceHTMLElements=False).find("body").itertext()).split())


def cells(html: str, name: str) -> list[str]:
    body = html5lib.parse(html, namespaceHTMLElements=False)
    return [
        " ".join("".join(cell.itertext()).split())
        for cell in body.iter("td")
        if name in (cell.get("class") or "").split()
    ]


def test_each_row_of_a_run_says_what_was_asked(page: Page, run: FactoryRun) -> None:  # AI-1 AI-7
    add(run, 1, user_prompt="Mend the parser\nand its tests")
    add(run, 2, user_prompt=None)
    add(run, 3, user_prompt="")
    add(run, 4, user_prompt=HOSTILE)
    html = page(f"/factory/runs/{run.pk}")
    asked = cells(html, "asked")
    assert asked[:3] == ["Mend the parser", "message not recorded", "an empty message"]
    assert asked[3].startswith("</td><script>alert(1)</script>") and "<script>alert" not in html


def test_what_was_asked_costs_one_query_and_no_whole_message(page: Page, run: FactoryRun) -> None:  # PF-4
    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert len(page(f"/factory/runs/{run.pk}")) < 200_000
        texts = [query["sql"] for query in queries if "user_prompt" in query["sql"]]
        assert len(texts) == 1 and "substr" in texts[0].lower()
        return len(queries)

    add(run, 1, user_prompt="short")
    alone = cost()
    for number in range(2, 60):
        add(run, number, user_prompt="long " * 20_000, model=f"m-{number}")
    assert cost() == alone


def test_a_run_of_several_models_names_the_most_used_first(page: Page, run: FactoryRun) -> None:  # FA-13
    for number in range(1, 4):
        add(run, number, model="zeta-1" if number > 1 else "alpha-9", user_prompt="x")
    add(run, 4, model="", user_prompt="x")
    assert cells(page("/factory"), "agent") == ["pi zeta-1 and 1 more"]
    html = page(f"/factory/runs/{run.pk}")
    assert "zeta-1 (2 attempts), alpha-9 (1 attempt)" in text_of(html)
    assert cells(html, "asked") == ["x alpha-9", "x zeta-1", "x zeta-1", "x model not recorded"]
    for model, found in (("alpha", True), ("ZETA", True), ("other", False)):
        assert (f'href="/factory/runs/{run.pk}"' in page(f"/factory?model={model}")) == found


def test_the_dates_of_a_search_stay_with_their_labels(page: Page) -> None:  # VW-6
    body = html5lib.parse(page("/factory"), namespaceHTMLElements=False)
    kept = [span for span in body.iter("span") if span.get("class") == "together" and span.find("label") is not None]
    assert [(span.find("label").get("for"), span.find("input").get("id")) for span in kept] == [
        ("since", "since"),
        ("until", "until"),
    ]


def test_a_run_of_one_model_names_it_once(page: Page, run: FactoryRun) -> None:  # FA-13
    add(run, 1, model="zeta-1", user_prompt="x")
    assert cells(page("/factory"), "agent") == ["pi zeta-1"]
    assert page(f"/factory/runs/{run.pk}").count("zeta-1") == 1


def test_what_a_tool_puts_in_a_models_place_is_no_model(ada: User, tmp_path: Path) -> None:  # IM-1 FA-13
    rows = [
        claude_row("user", "1", None, "Do it"),
        claude_row("assistant", "2", "1", [{"type": "text", "text": "So"}]),
        claude_row("assistant", "3", "2", [{"type": "text", "text": "API Error"}]),
    ]  # fmt: skip
    rows[1]["message"]["model"], rows[2]["message"]["model"] = "sonnet", "<synthetic>"  # type: ignore[index]
    assert bring(write_lines(tmp_path / "s.jsonl", *rows)).attempts.get().model == "sonnet"


def test_tokens_of_a_cache_are_part_of_the_input_and_said_at_the_attempt(
    page: Page, ada: User, tmp_path: Path
) -> None:  # FA-13 IM-1
    usage = {"input": 10, "output": 753, "cacheRead": 182_000, "cacheWrite": 758}
    answered = [pi_message("1", None, "user", "Do it"), pi_message("2", "1", "assistant", "So", usage=usage)]
    plain = pi_message("4", "3", "assistant", "So", usage={"input": 7, "output": 3})
    run = bring(write_lines(tmp_path / "s.jsonl", PI_HEADER, *answered, pi_message("3", "2", "user", "More"), plain))
    whole = "182,768 in / 753 out (182,758 cached)"
    html = page(f"/factory/runs/{run.pk}")
    assert cells(html, "tokens") == [whole, "7 in / 3 out"]
    assert "leave out" not in text_of(html)
    assert cells(page("/factory"), "tokens") == ["182,775 in / 756 out (182,758 cached)"]
    assert whole in text_of(page(f"/factory/runs/{run.pk}/attempts/1"))
    assert [one.cached_input_tokens for one in run.attempts.order_by("number")] == [182_758, None]


def test_a_note_about_one_attempt_names_it_as_the_page_does(ada: User) -> None:  # IM-1
    run = bring(SESSIONS / "pi/v3-retries/session.jsonl")
    notes = [note.text for note in run.notes.all() if "asked again" in note.text]
    assert [text.partition(": ")[0] for text in notes] == ["Attempt 2"]
    assert bring(SESSIONS / "pi/v3-retries/session.jsonl").notes.count() == run.notes.count()


def test_an_import_that_knew_no_cache_is_completed_by_bringing_the_file_again(ada: User, tmp_path: Path) -> None:
    # IM-2
    usage = {"input": 10, "output": 753, "cacheRead": 90, "cacheWrite": 0}
    records = [PI_HEADER, pi_message("1", None, "user", "Do it"), pi_message("2", "1", "assistant", "So", usage=usage)]
    path = write_lines(tmp_path / "s.jsonl", *records)
    bring(path).attempts.update(input_tokens=10, cached_input_tokens=None)
    attempt = bring(path).attempts.get()
    assert (attempt.input_tokens, attempt.cached_input_tokens) == (100, 90)


def test_an_attempt_begins_with_the_message_and_the_reply_and_says_once_what_is_not_known(
    page: Page, ada: User
) -> None:  # AI-1 AI-2 AI-4
    run = bring(SESSIONS / "pi/v3-resumed-two-turns.jsonl")
    attempt = run.attempts.get(number=2)
    said = text_of(page(f"/factory/runs/{run.pk}/attempts/2"))
    message, reply = str(attempt.user_prompt).strip().split("\n")[0], str(attempt.reply).strip().split("\n")[0]
    below = (
        "Task instructions were not captured separately for this attempt. The exact user message is available below."
    )
    known = [said.index("Task instructions"), said.index(below), said.index(message), said.index(f"Reply {reply}")]
    gaps = [
        "The task could not be separated from this session's other messages.",
        "Attachment accounting was not recorded for this attempt.",
        "Imported from pi session: what that format does not hold reads as not recorded.",
    ]
    sections = ["This dispatch", "Inherited context", "Files available", "Attachments delivered"]
    places = known + [said.index(gap) for gap in gaps] + [said.index(section) for section in sections]
    assert places == sorted(places)
    assert [said.count(gap) for gap in (below, *gaps)] == [1, 1, 1, 1]


def test_a_message_that_is_there_is_not_said_to_be_missing_where_its_kind_is(page: Page, run: FactoryRun) -> None:
    # AI-2
    add(run, 1, user_prompt="Mend it")
    add(run, 2, user_prompt=None)
    kind = "This dispatch Whether a first request or a correction is not recorded"
    assert f"{kind} · 7 B" in text_of(page(f"/factory/runs/{run.pk}/attempts/1"))
    assert f"{kind} · the message was not recorded" in text_of(page(f"/factory/runs/{run.pk}/attempts/2"))


def test_what_a_session_file_lists_is_not_said_to_have_been_sent_earlier(page: Page, ada: User) -> None:  # AI-5
    run = bring(SESSIONS / "inspect/image-attachment.json")
    said = text_of(page(f"/factory/runs/{run.pk}/attempts/1"))
    assert "How many inputs were declared, captured and omitted is unknown." in said
    assert "sent earlier" not in said and "not captured" in said
    assert "Files available none recorded" in said
    assert ", openai/gpt-4o" not in said


def test_a_log_is_called_by_its_first_input_and_its_task_is_a_note(page: Page, ada: User) -> None:  # IM-1 FA-1
    run = bring(SESSIONS / "inspect/small-deflate.eval")
    assert run.task == run.attempts.get(number=1).user_prompt
    assert run.notes.filter(text="The log's task: popularity").exists()


def test_home_and_the_search_do_not_call_a_session_of_local_commands_succeeded(
    page: Page, ada: User, tmp_path: Path
) -> None:  # IM-1 FA-13
    run = bring(write_lines(tmp_path / "s.jsonl", claude_row("user", "1", None, "<command-name>/clear</command-name>")))
    home = page("/")
    assert f'href="/factory/runs/{run.pk}"' in home and "succeeded" not in home
    assert "No run matches this search." in page("/factory?state=succeeded")
