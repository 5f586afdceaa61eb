"""The factory's pages and the collector, through the site's own middleware."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import html5lib
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from factory.models import AgentAttempt, AgentAttemptInput, AgentToolCall, FactoryRun

from .visiting import Run, input_of, page

pytestmark = pytest.mark.django_db
HOSTILE = "<img src=x onerror=alert(1)>\"'</pre><script>alert(1)</script>"


# The panel on its page ------------------------------------------------------------------------------------------


def test_an_attempt_shows_its_task_at_once_and_six_sections_in_order(owner: Client, built: int) -> None:  # AI-1
    html = page(owner, f"/factory/runs/{built}/attempts/1")
    order = [
        *("Task instructions", "This dispatch", "Inherited context"),
        *("Files available", "Attachments delivered", "Exact model messages"),
    ]
    places = [html.index(f">{name}</h2>") for name in order]
    assert places == sorted(places)
    before_the_second = html[: places[1]]
    assert "Write a slugify command." in before_the_second
    assert "<details open" in before_the_second, "it can be read without a click"


def test_delivery_coverage_and_counts_are_said_in_words(owner: Client, built: int) -> None:  # AI-2 AI-5
    html = page(owner, f"/factory/runs/{built}/attempts/1")
    for words in ("Available by path", "Included in message", "Attached to request", "INPUTS PARTIAL"):
        assert words in html
    assert "declared 6 · captured 5 · omitted 1" in html
    assert "symbolic link, not followed" in html


def test_a_correction_names_its_kind_links_what_it_corrects_and_says_what_it_inherits(
    owner: Client, built: int
) -> None:  # AI-2 AI-4
    html = page(owner, f"/factory/runs/{built}/attempts/2")
    assert "PARSE CORRECTION" in html
    assert "No explicit files or attachments were supplied on this dispatch." in html
    assert "which this one corrects" in html
    assert "cannot be listed in full" in html
    assert f"/factory/runs/{built}/attempts/1" in html
    assert "Write a slugify command." in html, "the stable task stands on every turn"


def test_each_input_stands_exactly_once(owner: Client, built: int) -> None:  # AI-5
    html = page(owner, f"/factory/runs/{built}/attempts/1")
    count = AgentAttemptInput.objects.filter(attempt__run_id=built, attempt__number=1).count()
    assert [html.count(f'id="input-{seq}"') for seq in range(1, count + 1)] == [1] * count


def test_an_attempt_of_the_older_schema_says_what_was_not_recorded(owner: Client, ada: User) -> None:  # AI-2 FA-3
    row = FactoryRun.objects.create(owner=ada, workflow="old", provider="pi", started_at=timezone.now())
    AgentAttempt.objects.create(
        attempt_id="a" * 32, run=row, number=1, phase="plan", provider="pi", user_prompt="All of it"
    )
    html = page(owner, f"/factory/runs/{row.pk}/attempts/1")
    assert (
        "Task instructions were not captured separately for this attempt. The exact user message is available below."
        in html
    )
    assert "Attachment accounting was not recorded for this attempt." in html
    assert "INPUTS NOT RECORDED" in html
    assert "none on this dispatch" not in html
    assert "All of it" in html


def test_an_attempt_whose_task_was_lost_shows_a_derived_one_and_says_so(owner: Client, built: int) -> None:  # AI-3
    AgentAttempt.objects.filter(run_id=built).update(task_prompt=None)
    html = page(owner, f"/factory/runs/{built}/attempts/1")
    assert "DERIVED" in html and "Write a slugify command." in html
    second = page(owner, f"/factory/runs/{built}/attempts/2")
    assert "DERIVED" in second and f'/factory/runs/{built}/attempts/1">attempt 1</a>' in second


def test_the_drawer_and_the_page_draw_one_panel(owner: Client, built: int) -> None:  # AI-1
    html = page(owner, f"/factory/runs/{built}")
    assert f'hx-get="/factory/runs/{built}/attempts/1"' in html
    assert 'hx-select="#attempt"' in html
    assert '<article id="attempt">' in page(owner, f"/factory/runs/{built}/attempts/1")


def test_tool_use_is_beside_the_inputs_and_not_among_them(owner: Client, built: int) -> None:  # FA-13
    html = page(owner, f"/factory/runs/{built}/attempts/1")
    tools = html[html.index("Tool use</h2>") :]
    assert "read" in tools and "A file that it found this way is no input." in tools
    call = page(owner, f"/factory/runs/{built}/attempts/1/tools/3")
    assert "notes.md" in call


@pytest.mark.parametrize("name", ["task", "user", "system", "reply"])
def test_each_long_text_has_a_page_and_its_exact_bytes(owner: Client, built: int, name: str) -> None:  # AI-6
    row = AgentAttempt.objects.get(run_id=built, number=1)
    exact = {"task": row.task_prompt, "user": row.user_prompt, "system": row.system_prompt, "reply": row.reply}[name]
    base = f"/factory/runs/{built}/attempts/1/{name}"
    raw = owner.get(f"{base}/raw")
    assert raw.content.decode() == exact
    assert raw.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "<html" in page(owner, base)
    assert "<html" not in page(owner, base, **{"HX-Request": "true"})


@pytest.mark.parametrize("name", ["secret", "attempt_id", "launch-command"])
def test_a_text_that_is_not_one_is_not_there(owner: Client, built: int, name: str) -> None:  # SF-4
    page(owner, f"/factory/runs/{built}/attempts/1/{name}", 404)


def test_a_failed_check_is_shown_with_its_command_and_what_it_printed(owner: Client, run: Run, ada: User) -> None:
    # FA-13
    run_id, _ = run("Do it", workflow="ask", check="echo '<b>4 failed</b>'; exit 4", owner_id=ada.pk)
    for number in (1, 2):
        said = page(owner, f"/factory/runs/{run_id}/attempts/{number}")
        assert "The check that failed" in said
        assert "&lt;b&gt;4 failed&lt;/b&gt;" in said
    raw = owner.get(f"/factory/runs/{run_id}/attempts/2/check/raw")
    assert raw.content.decode() == "<b>4 failed</b>"


def test_a_running_attempt_asks_again_and_an_ended_one_stops(owner: Client, built: int) -> None:  # VW-10
    FactoryRun.objects.filter(pk=built).update(state="running")
    assert 'hx-trigger="every 3s"' in page(owner, f"/factory/runs/{built}")
    assert "data-live" in page(owner, f"/factory/runs/{built}/live")
    FactoryRun.objects.filter(pk=built).update(state="succeeded")
    assert "every 3s" not in page(owner, f"/factory/runs/{built}/live", 286)


# Who may see what ------------------------------------------------------------------------------------------------


def routes(run_id: int) -> list[str]:
    base, row = f"/factory/runs/{run_id}", input_of(run_id, label="notes.md")
    return [
        *(base, f"{base}/live", f"{base}/attempts/1", f"{base}/attempts/1/task", f"{base}/attempts/1/task/raw"),
        *(f"{base}/attempts/1/tools/1", f"{base}/attempts/1/tools/1/raw", f"/factory/inputs/{row.pk}"),
        *(f"/api/collector/attempts/{row.attempt_id}", f"/api/collector/inputs/{row.pk}"),
    ]


def test_a_stranger_finds_nothing_an_operator_everything_nobody_the_door(
    client_of: Callable[[User | None], Client], owner: Client, built: int
) -> None:  # FA-12 SF-1
    stranger = client_of(User.objects.create_user("eve", password="x"))
    operator = client_of(User.objects.create_user("op", password="x", is_staff=True))
    nobody = client_of(None)
    for path in routes(built):
        assert owner.get(path).status_code in {200, 286}, path
        assert operator.get(path).status_code in {200, 286}, path
        assert stranger.get(path).status_code == 404, path
        assert nobody.get(path).status_code in {302, 401, 403}, path
    assert f"/factory/runs/{built}" not in page(stranger, "/factory")
    assert f"/factory/runs/{built}" in page(operator, "/factory")


def test_a_run_without_an_owner_is_the_operators_alone(
    client_of: Callable[[User | None], Client], owner: Client, run: Run
) -> None:  # FA-12
    run_id, _ = run("Do it")
    operator = client_of(User.objects.create_user("op", password="x", is_staff=True))
    page(owner, f"/factory/runs/{run_id}", 404)
    page(operator, f"/factory/runs/{run_id}")


# What a record holds is text -------------------------------------------------------------------------------------


def test_markup_in_every_field_stays_text(owner: Client, ada: User, built: int) -> None:  # AI-7 SF-2
    paths = [path for path in routes(built) if "raw" not in path and "api" not in path]
    text = dict.fromkeys(("task", "provider", "workspace", "request_path"), HOSTILE)
    FactoryRun.objects.filter(pk=built).update(**text)
    names = [
        *("phase", "provider", "model", "session_id", "error"),
        *("system_prompt", "user_prompt", "task_prompt", "reply"),
    ]
    AgentAttempt.objects.filter(run_id=built).update(
        **dict.fromkeys(names, HOSTILE[:80]), launch_command=HOSTILE, state="failed"
    )
    AgentAttemptInput.objects.filter(attempt__run_id=built).update(label=HOSTILE, detail=HOSTILE, source_path=HOSTILE)
    AgentToolCall.objects.filter(attempt__run_id=built).update(name=HOSTILE, arguments=HOSTILE, output=HOSTILE)
    for path in ["/factory", *paths, f"/factory/runs/{built}/attempts/1/tools/1"]:
        html = page(owner, path, 286 if path.endswith("/live") else 200)
        assert "<script>alert" not in html and "<img src=x" not in html, path
        assert "&lt;img" in html or "/inputs/" in path, path


def test_labels_are_no_links_to_the_host(owner: Client, built: int) -> None:  # AI-7
    html = page(owner, f"/factory/runs/{built}/attempts/1")
    assert "file:" not in html
    assert 'href="/tmp' not in html and 'src="/tmp' not in html


def test_every_page_is_valid_html(owner: Client, built: int) -> None:
    for path in ["/factory", *(path for path in routes(built) if "api" not in path and "raw" not in path)]:
        if path.endswith("/live"):
            continue
        html5lib.HTMLParser(strict=True).parse(page(owner, path))


# The list --------------------------------------------------------------------------------------------------------


def bare_run(owner: User, **facts: Any) -> FactoryRun:
    values = {"owner": owner, "workflow": "ask", "provider": "pi", "state": "succeeded"} | facts
    return FactoryRun.objects.create(**values)


def shown(html: str) -> list[int]:
    return [int(number) for number in re.findall(r'href="/factory/runs/(\d+)"', html)]


def test_paging_neither_skips_nor_repeats_when_times_are_equal(owner: Client, ada: User) -> None:
    now = timezone.now()
    every = [bare_run(ada, started_at=now).pk for _ in range(60)]
    seen, path, pages = [], "/factory", 0
    while path and pages < 9:
        html = page(owner, path)
        seen += shown(html)
        pages += 1
        path = link(html, "next")
    assert (seen, pages) == (sorted(every, reverse=True), 3)
    assert shown(page(owner, link(html, "prev"))) == sorted(every, reverse=True)[25:50]


def link(html: str, rel: str) -> str:
    found = re.search(rf'href="([^"]*)" rel="{rel}"', html)
    return found[1] if found else ""


def test_runs_are_found_by_words_model_state_and_day(owner: Client, ada: User) -> None:
    day = datetime(2026, 11, 29, 23, 59, tzinfo=UTC)
    slug = bare_run(ada, task="Write a SLUG command", started_at=day)
    failed = bare_run(ada, task="other", state="failed", started_at=datetime(2026, 11, 30, tzinfo=UTC))
    AgentAttempt.objects.create(attempt_id="a" * 32, run=failed, number=1, phase="x", provider="pi", model="gpt-large")
    for query, found in {
        "q=slug": [slug.pk],
        "model=GPT": [failed.pk],
        "state=failed": [failed.pk],
        "since=2026-11-30": [failed.pk],
        "until=2026-11-29": [slug.pk],
        "q=slug&state=failed": [],
    }.items():
        assert shown(page(owner, f"/factory?{query}")) == found, query


@pytest.mark.parametrize(
    "query", ["since=yesterday", "state=odd", "before=x", "q=%00", "after=-1", f"before={'9' * 30}"]
)
def test_a_search_that_cannot_be_read_is_a_sentence(owner: Client, query: str) -> None:  # SF-4
    assert "form-error" in page(owner, f"/factory?{query}", 400)


def test_a_first_day_after_the_last_is_said_and_not_an_empty_list(owner: Client) -> None:  # SF-4
    html = page(owner, "/factory?since=2026-12-01&until=2026-11-01", 400)
    assert "From 2026-12-01 is after To 2026-11-01" in html and "No run matches" not in html
    page(owner, "/factory?since=2026-12-01&until=2026-12-01")


def test_an_empty_list_says_what_to_do(owner: Client) -> None:
    assert "manage.py factory run" in page(owner, "/factory")


def test_sums_beyond_32_bits_are_shown(owner: Client, ada: User) -> None:  # FA-13
    row = bare_run(ada)
    AgentAttempt.objects.bulk_create(
        AgentAttempt(
            attempt_id=f"{number:032x}",
            run=row,
            number=number,
            phase="build",
            provider="pi",
            state="succeeded",
            input_tokens=3_000_000_000,
            output_tokens=3_000_000_000,
        )
        for number in (1, 2)
    )
    assert "6,000,000,000 in / 6,000,000,000 out" in page(owner, "/factory")
    assert "3,000,000,000 in / 3,000,000,000 out" in page(owner, f"/factory/runs/{row.pk}")


@pytest.mark.parametrize(("kind", "words"), [("gate_retry", "check correction"), ("parse_retry", "parse correction")])
def test_a_kind_of_send_has_one_word_everywhere(owner: Client, ada: User, kind: str, words: str) -> None:  # AI-2 FA-4
    row = bare_run(ada)
    one = AgentAttempt.objects.create(attempt_id="a" * 32, run=row, number=1, phase="x", provider="pi", send_kind=kind)
    shown = [page(owner, f"/factory/runs/{row.pk}"), page(owner, f"/factory/runs/{row.pk}/attempts/1")]
    assert all(words in html.lower() for html in shown)
    assert one.get_send_kind_display() == words  # as the admin says it
    assert kind.replace("_", " ") not in "".join(shown).lower()


# Weight ----------------------------------------------------------------------------------------------------------


def test_a_run_of_400_attempts_takes_the_same_queries_and_stays_light(
    owner: Client, ada: User, django_assert_max_num_queries: Any
) -> None:  # PF-4
    row = bare_run(ada, started_at=timezone.now())
    AgentAttempt.objects.bulk_create(
        AgentAttempt(
            attempt_id=f"{number:032x}",
            run=row,
            number=number,
            phase="build",
            provider="pi",
            model="gpt-large",
            session_id="s",
            user_prompt="x" * 5000,
            task_prompt="x" * 5000,
            send_kind="initial",
            turn_index=number,
            previous_turn_attempt_id=f"{number - 1:032x}" if number > 1 else None,
            state="succeeded",
            input_tokens=12_345,
            output_tokens=1_234,
            started_at=timezone.now(),
            ended_at=timezone.now(),
        )
        for number in range(1, 401)
    )
    with django_assert_max_num_queries(8):
        assert len(page(owner, f"/factory/runs/{row.pk}").encode()) <= 250_000
    with django_assert_max_num_queries(9):
        assert len(page(owner, f"/factory/runs/{row.pk}/attempts/400").encode()) <= 250_000


def test_an_attempt_of_100_inputs_takes_the_same_queries_and_stays_light(
    owner: Client, ada: User, django_assert_max_num_queries: Any
) -> None:  # PF-4
    row = bare_run(ada)
    one = AgentAttempt.objects.create(
        attempt_id="a" * 32, run=row, number=1, phase="x", provider="pi", task_prompt="x", input_coverage="complete"
    )
    AgentAttemptInput.objects.bulk_create(
        AgentAttemptInput(
            attempt=one,
            seq=seq,
            label=f"some/folder/with a name/file-{seq}.md",
            source_kind="context_handoff",
            delivery_mode="path_reference",
            media_type="text/plain",
            preview_kind="text",
            size_bytes=10**6,
            sha256="a" * 64,
            capture_status="captured",
            artifact_status="available",
        )
        for seq in range(1, 101)
    )
    AgentToolCall.objects.bulk_create(
        AgentToolCall(attempt=one, seq=seq, name="bash", output="x" * 50_000, output_bytes=50_000)
        for seq in range(1, 51)
    )
    with django_assert_max_num_queries(9):
        assert len(page(owner, f"/factory/runs/{row.pk}/attempts/1").encode()) <= 250_000
