"""Pages of what is very long, very many, or has no name: the thing that matters still stands first."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from factory.importing import import_path
from factory.models import AgentAttempt, AgentAttemptInput, AgentToolCall, FactoryRun, RunNote
from factory.outcomes import MASK

pytestmark = pytest.mark.django_db
Page = Callable[..., str]


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password="x")


@pytest.fixture
def page(ada: User) -> Page:
    client = Client()
    client.force_login(ada)

    def page(path: str, status: int = 200) -> str:
        response = client.get(path)
        assert response.status_code == status, path
        return response.content.decode()

    return page


@pytest.fixture
def attempt(ada: User) -> AgentAttempt:
    row = FactoryRun.objects.create(owner=ada, workflow="ask", provider="pi", state="failed", started_at=timezone.now())
    return make_attempt(row, 1)


def make_attempt(row: FactoryRun, number: int, **facts: Any) -> AgentAttempt:
    values = {"phase": "ask", "provider": "pi", "state": "succeeded", "task_prompt": "Do it"} | facts
    return AgentAttempt.objects.create(attempt_id=f"{number:032x}", run=row, number=number, **values)


def add_input(attempt: AgentAttempt, **facts: Any) -> AgentAttemptInput:
    values = {
        **{"seq": 1, "label": "notes.md", "source_kind": "context_handoff", "delivery_mode": "path_reference"},
        **{"capture_status": "captured", "artifact_status": "evicted", "sha256": "a" * 64, "size_bytes": 1},
    }
    return AgentAttemptInput.objects.create(attempt=attempt, **values | facts)


def test_a_long_failure_is_a_line_with_the_rest_behind_it(page: Page, attempt: AgentAttempt) -> None:  # FA-13
    error = "Traceback: what it was about\n" + "a line of it\n" * 50_000
    AgentAttempt.objects.filter(pk=attempt.pk).update(state="failed", error=error)
    base = f"/factory/runs/{attempt.run_id}/attempts/1"
    html = page(base)
    assert "Traceback: what it was about" in html
    assert len(html) < 60_000
    assert page(f"{base}/error/raw") == error
    assert "a line of it" in page(f"{base}/error")


def test_an_attempt_without_a_failure_has_no_page_of_it(page: Page, attempt: AgentAttempt) -> None:  # SF-4
    page(f"/factory/runs/{attempt.run_id}/attempts/1/error", 404)


def test_of_many_notes_the_problems_and_a_few_stand_first(page: Page, attempt: AgentAttempt) -> None:  # FA-9
    RunNote.objects.bulk_create(
        RunNote(run=attempt.run, text=f"note {n}", is_error=n == 250, at=timezone.now()) for n in range(300)
    )
    html = page(f"/factory/runs/{attempt.run_id}")
    assert html.count('role="note"') == 1
    assert html.index("note 250") < html.index("note 0<")
    assert "99 more notes, and others" in html
    assert len(html) < 60_000


def test_a_traceback_is_told_by_its_last_line(page: Page, attempt: AgentAttempt) -> None:  # FA-13
    error = "Traceback (most recent call last):\n" + '  File "x.py", line 3\n' * 60 + "KeyError: 'slug'\n"
    AgentAttempt.objects.filter(pk=attempt.pk).update(state="failed", error=error)
    assert "KeyError: &#x27;slug&#x27;</strong>" in page(f"/factory/runs/{attempt.run_id}")
    assert "KeyError: &#x27;slug&#x27;</p>" in page(f"/factory/runs/{attempt.run_id}/attempts/1")


def test_a_run_is_called_by_its_request(page: Page, attempt: AgentAttempt) -> None:  # AI-1
    FactoryRun.objects.filter(pk=attempt.run_id).update(task="\n\nWrite a slug command\nand more")
    html = page(f"/factory/runs/{attempt.run_id}")
    assert '<p class="lead">Write a slug command</p>' in html[: html.index("<table")]


def test_thousands_of_tool_calls_come_in_pages(
    page: Page, attempt: AgentAttempt, django_assert_max_num_queries: Any
) -> None:  # FA-13 PF-4
    AgentToolCall.objects.bulk_create(AgentToolCall(attempt=attempt, seq=n, name=f"tool-{n}-") for n in range(1, 2001))
    base = f"/factory/runs/{attempt.run_id}/attempts/1"
    with django_assert_max_num_queries(9):
        first = page(base)
    assert len(first) < 150_000
    assert "tool-100-" in first and "tool-101-" not in first
    assert "page 1 of 20" in first and f"{base}?page=2#tools" in first
    assert "tool-2000-" in page(f"{base}?page=20")
    page(f"{base}?page=x")


def test_a_session_of_hundreds_of_turns_shows_those_around_this_one(page: Page, attempt: AgentAttempt) -> None:  # AI-4
    for number in range(2, 401):
        make_attempt(attempt.run, number, session_id="s")
    line = page(f"/factory/runs/{attempt.run_id}/attempts/200").split('class="session"')[1].split("</p>")[0]
    shown = [int(part.split('"')[0]) for part in line.split("/attempts/")[1:]]
    assert shown == [2, 198, 199, 201, 202, 400]
    assert line.count("…") == 2


def test_a_run_of_many_attempts_comes_in_pages_on_one_clock(
    page: Page, ada: User, django_assert_max_num_queries: Any
) -> None:  # PF-4 VW-10
    begun = datetime(2026, 11, 29, 12, tzinfo=UTC)
    row = FactoryRun.objects.create(owner=ada, workflow="ask", provider="pi", state="succeeded", started_at=begun)
    AgentAttempt.objects.bulk_create(
        AgentAttempt(
            attempt_id=f"{n:032x}",
            run=row,
            number=n,
            phase="ask",
            provider="pi",
            state="succeeded",
            send_kind="gate_retry",
            retry_of_attempt_id=f"{n - 1:032x}" if n > 1 else None,
            started_at=begun + timedelta(seconds=n),
            ended_at=begun + timedelta(seconds=n + 1),
        )
        for n in range(1, 251)
    )
    base = f"/factory/runs/{row.pk}"
    pages = []
    for number in (1, 2, 3):
        with django_assert_max_num_queries(8):
            pages.append(page(f"{base}?page={number}"))
    assert [[int(n) for n in re.findall(r'<a id="a(\d+)"', html)] for html in pages] == [
        [*range(1, 101)],
        [*range(101, 201)],
        [*range(201, 251)],
    ]
    assert all("250 attempts" in html for html in pages)
    assert "Attempts 101 to 200 of 250." in pages[1] and "page 2 of 3" in pages[1]
    assert f'href="{base}?page=3">The newest</a>' in pages[0] and f'href="{base}">The first</a>' in pages[2]
    assert "retries #100" in pages[1]  # which stands on another page
    bars = [[float(x) for x in re.findall(r'<rect[^>]* x="([\d.]+)"', html)] for html in pages]
    assert max(bars[0]) < min(bars[1]) and max(bars[1]) < min(bars[2])


@pytest.mark.parametrize("wanted", ["0", "-1", "x", "99999999999", "3"])
def test_a_page_that_a_run_does_not_have_is_its_nearest(page: Page, attempt: AgentAttempt, wanted: str) -> None:
    # SF-4
    assert 'id="a1"' in page(f"/factory/runs/{attempt.run_id}?page={wanted}")
    assert "The newest" not in page(f"/factory/runs/{attempt.run_id}?page={wanted}")


def test_an_attempt_leads_back_to_the_page_on_which_it_stands(page: Page, attempt: AgentAttempt) -> None:  # VW-10
    for number in range(2, 202):
        make_attempt(attempt.run, number)
    base = f"/factory/runs/{attempt.run_id}"
    assert f'<a href="{base}">Run' in page(f"{base}/attempts/100")
    assert f'<a href="{base}?page=2">Run' in page(f"{base}/attempts/101")
    assert f'data-run="{base}?page=2"' in page(f"{base}?page=2")


def test_a_running_run_asks_again_for_the_page_that_is_shown(page: Page, attempt: AgentAttempt) -> None:  # VW-10
    FactoryRun.objects.filter(pk=attempt.run_id).update(state="running")
    for number in range(2, 202):
        make_attempt(attempt.run, number)
    base = f"/factory/runs/{attempt.run_id}"
    assert f'hx-get="{base}/live?page=2"' in page(f"{base}?page=2")
    assert 'id="a150"' in page(f"{base}/live?page=2")


def test_of_a_session_of_many_turns_the_nearest_are_listed_and_the_others_counted(
    page: Page, attempt: AgentAttempt
) -> None:  # AI-4
    before = attempt
    for number in range(2, 251):
        before = make_attempt(
            attempt.run, number, session_id="s", turn_index=number, previous_turn_attempt=before, send_kind="initial"
        )
    html = page(f"/factory/runs/{attempt.run_id}/attempts/250")
    inherited = html.split('id="inherited"')[1].split("</details>")[0]
    assert inherited.count("<li>") == 100
    assert "The 149 turns before these are in" in inherited
    assert "249 earlier turns" in html


def test_long_arguments_can_be_read_whole(page: Page, attempt: AgentAttempt) -> None:  # FA-13
    AgentToolCall.objects.create(attempt=attempt, seq=1, name="write", arguments="x" * 300_000 + "the end")
    base = f"/factory/runs/{attempt.run_id}/attempts/1/tools/1"
    assert "the end" not in page(base)
    assert f'href="{base}?all=1"' in page(base)
    assert "the end" in page(f"{base}?all=1")


def test_what_looks_like_a_secret_is_hidden_and_counted_and_raw_has_it(
    page: Page, attempt: AgentAttempt
) -> None:  # FA-13
    key = "sk-1" + "a" * 40
    AgentToolCall.objects.create(
        attempt=attempt, seq=1, name="bash", arguments=f'{{"command": "curl -H {key}"}}', output=f"API_KEY={key}\n"
    )
    base = f"/factory/runs/{attempt.run_id}/attempts/1/tools/1"
    html = page(base)
    assert key not in html and f"API_KEY={MASK}" in html
    assert "2 values that look like a secret are hidden here; raw shows the output as it was." in html
    assert page(f"{base}/raw") == f"API_KEY={key}\n"


def test_messages_are_shown_as_they_were_sent_whatever_is_in_them(page: Page, attempt: AgentAttempt) -> None:  # AI-1
    key = "sk-1" + "a" * 40
    AgentAttempt.objects.filter(pk=attempt.pk).update(task_prompt=f"use {key}", user_prompt=f"use {key}", reply=key)
    for name in ("task", "user", "reply"):
        assert key in page(f"/factory/runs/{attempt.run_id}/attempts/1/{name}")


@pytest.mark.parametrize("label", ["", "  ", "\n"])
def test_an_input_without_a_name_is_called_by_its_number(page: Page, attempt: AgentAttempt, label: str) -> None:  # AI-5
    row = add_input(attempt, label=label)
    assert '<h1 class="mono">input 1</h1>' in page(f"/factory/inputs/{row.pk}", 410)
    assert '<span class="mono">input 1</span>' in page(f"/factory/runs/{attempt.run_id}/attempts/1")


def test_a_name_with_a_line_break_stays_on_its_line(page: Page, attempt: AgentAttempt) -> None:  # AI-7
    row = add_input(attempt, label="a\nb\u202e")
    for html in (page(f"/factory/inputs/{row.pk}", 410), page(f"/factory/runs/{attempt.run_id}/attempts/1")):
        assert 'a<span class="ctl" title="U+000A">␊</span>b<span class="ctl" title="U+202E">RLO</span>' in html


def test_of_an_endless_name_the_middle_is_left_out(page: Page, attempt: AgentAttempt) -> None:  # AI-7
    add_input(attempt, label="a" * 1_000_000 + "/the-file.md")
    AgentAttempt.objects.filter(pk=attempt.pk).update(session_id="s" * 1_000_000)
    html = page(f"/factory/runs/{attempt.run_id}/attempts/1")
    assert "/the-file.md" in html and len(html) < 60_000


def test_a_session_without_a_message_is_no_run_that_ended_early(page: Page, ada: User, tmp_path: Path) -> None:  # IM-1
    (tmp_path / "s.jsonl").write_text('{"type": "session", "id": "s-1", "version": 3}\n')
    [report] = import_path(tmp_path / "s.jsonl", owner_id=ada.pk)
    assert "The file holds no message" in page(f"/factory/runs/{report.runs[0]}")
