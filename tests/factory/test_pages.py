"""The factory's pages and the collector, through the site's own middleware."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import html5lib
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

import factory
from factory.models import AgentAttempt, AgentAttemptInput, AgentToolCall, FactoryRun
from factory.providers.rehearsal import Rehearsal
from factory.retention import SnapshotStore
from factory.workflow import RunEnd
from tests.conftest import SHARED_DATA

pytestmark = pytest.mark.django_db
Run = Callable[..., tuple[int, RunEnd]]
IMAGE = SHARED_DATA / "media/pillow/hopper.png"
HOSTILE = "<img src=x onerror=alert(1)>\"'</pre><script>alert(1)</script>"


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password="x")


@pytest.fixture
def client_of(settings: Any, store: SnapshotStore) -> Callable[[User | None], Client]:
    settings.FACTORY_SNAPSHOT_ROOT = store.root

    def client_of(user: User | None) -> Client:
        client = Client()
        if user is not None:
            client.force_login(user)
        return client

    return client_of


@pytest.fixture
def owner(client_of: Callable[[User | None], Client], ada: User) -> Client:
    return client_of(ada)


@pytest.fixture
def built(run: Run, ada: User, tmp_path: Path) -> Iterator[int]:
    """A run of Ada's with a prompt file, a context folder, an image, and one unreadable reply."""
    task = tmp_path / "task.md"
    task.write_text("Write a slugify command.\n")
    context = tmp_path / "context"
    context.mkdir()
    (context / "notes.md").write_text("Use hyphens.")
    (context / "blob.bin").write_bytes(b"\xff\x00")
    (context / "drawing.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    (context / "link").symlink_to("/etc/passwd")
    run_id, _ = run(
        str(task),
        provider=Rehearsal(frozenset({"parse"})),
        owner_id=ada.pk,
        context=str(context),
        attach=[str(IMAGE)],
    )
    yield run_id


def page(client: Client, path: str, status: int = 200, **headers: str) -> str:
    response = client.get(path, headers=headers)
    assert response.status_code == status, f"{path}: {response.status_code}"
    return response.content.decode()


def input_of(run_id: int, **facts: Any) -> AgentAttemptInput:
    return AgentAttemptInput.objects.filter(attempt__run_id=run_id, **facts).order_by("pk")[0]


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


# Previews -------------------------------------------------------------------------------------------------------


def assert_contained(response: Any) -> None:
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cache-Control"] == "private, no-store"
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response.headers["Accept-Ranges"] == "none"
    assert not response.headers.get("ETag")


def test_a_text_preview_is_the_captured_bytes_with_their_hash(owner: Client, built: int) -> None:  # AI-6
    row = input_of(built, label="notes.md")
    response = owner.get(f"/api/collector/inputs/{row.pk}")
    assert response.content == b"Use hyphens."
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["X-Content-SHA256"] == row.sha256 == hashlib.sha256(b"Use hyphens.").hexdigest()
    assert_contained(response)


def test_an_image_preview_is_of_the_type_its_bytes_have(owner: Client, built: int) -> None:  # AI-6
    row = input_of(built, label="hopper.png")
    response = owner.get(f"/api/collector/inputs/{row.pk}")
    assert (response.content, response.headers["Content-Type"]) == (IMAGE.read_bytes(), "image/png")
    assert_contained(response)


def test_a_range_is_ignored(owner: Client, built: int) -> None:  # AI-6
    row = input_of(built, label="hopper.png")
    response = owner.get(f"/api/collector/inputs/{row.pk}", headers={"Range": "bytes=0-3", "If-None-Match": "*"})
    assert (response.status_code, len(response.content)) == (200, IMAGE.stat().st_size)
    for asked in ({"Range": "bytes=9-3", "If-Range": '"old"'}, {"Range": "bytes=" + "0-1," * 5000}):
        response = owner.get(f"/api/collector/inputs/{row.pk}", headers=asked)
        assert (response.status_code, response.headers["Accept-Ranges"]) == (200, "none")


def test_what_lies_beside_a_copy_is_never_served_for_it(
    owner: Client, built: int, store: SnapshotStore
) -> None:  # AI-6
    row = input_of(built, label="notes.md")
    copy = store.root / row.attempt_id / str(row.seq)
    for suffix in (".gz", ".br"):
        copy.with_name(copy.name + suffix).symlink_to("/etc/passwd")
    response = owner.get(f"/api/collector/inputs/{row.pk}", headers={"Accept-Encoding": "gzip, br"})
    assert response.content == copy.read_bytes()
    assert "Content-Encoding" not in response.headers


def test_a_drawing_with_a_script_is_text(owner: Client, built: int) -> None:  # AI-6
    row = input_of(built, label="drawing.svg")
    response = owner.get(f"/api/collector/inputs/{row.pk}")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "&lt;script&gt;" in page(owner, f"/factory/inputs/{row.pk}")


@pytest.mark.parametrize("path", ["/api/collector/inputs/{}", "/factory/inputs/{}"])
def test_refusals_are_sentences_with_their_status(
    owner: Client, built: int, store: SnapshotStore, path: str
) -> None:  # AI-6
    blob, link = input_of(built, label="blob.bin"), input_of(built, label="link")
    kind = 415 if "api" in path else 422
    assert "no preview for this kind" in page(owner, path.format(blob.pk), kind)
    assert "never captured" in page(owner, path.format(link.pk), 404)
    notes = input_of(built, label="notes.md")
    copy = store.root / notes.attempt_id / str(notes.seq)
    copy.write_bytes(b"Use Hyphens.")
    assert "no longer matches its hash" in page(owner, path.format(notes.pk), 409)
    AgentAttemptInput.objects.filter(pk=notes.pk).update(artifact_status="evicted", detail="evicted: disk budget")
    assert "Evicted: disk budget. Hash and size remain." in page(owner, path.format(notes.pk), 410)


def test_a_long_text_is_paged_and_each_page_is_checked_whole(
    owner: Client, built: int, store: SnapshotStore
) -> None:  # AI-6
    row = input_of(built, label="notes.md")
    text = "".join(f"line {number}\n" for number in range(20_000))
    (store.root / row.attempt_id / str(row.seq)).write_text(text)
    AgentAttemptInput.objects.filter(pk=row.pk).update(sha256=hashlib.sha256(text.encode()).hexdigest())
    first = owner.get(f"/api/collector/inputs/{row.pk}")
    count = int(first.headers["X-Page-Count"])
    pages = [owner.get(f"/api/collector/inputs/{row.pk}?page={number}").content for number in range(1, count + 1)]
    assert b"".join(pages).decode() == text
    for wrong in ("0", str(count + 1), "x", "-1", "1e9"):
        page(owner, f"/api/collector/inputs/{row.pk}?page={wrong}", 404)
    assert f"page 2 of {count}" in page(owner, f"/factory/inputs/{row.pk}?page=2")


@pytest.mark.parametrize("wrong", ["0", "99999999", "../1", "1/../2", "%2e%2e", "a" * 32, "99999999999999999999999"])
def test_an_input_id_that_is_none_is_not_there(owner: Client, built: int, wrong: str) -> None:  # AI-6 SF-4
    page(owner, f"/api/collector/inputs/{wrong}", 404)


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_previews_are_only_read(owner: Client, built: int, method: str) -> None:  # AI-6
    row = input_of(built, label="notes.md")
    assert getattr(owner, method)(f"/api/collector/inputs/{row.pk}").status_code in {403, 405}


# The collector ---------------------------------------------------------------------------------------------------


def test_the_collector_gives_the_contracts_names_and_leaves_bodies_out(owner: Client, built: int) -> None:  # AI-5
    row = AgentAttempt.objects.get(run_id=built, number=2)
    facts = json.loads(page(owner, f"/api/collector/attempts/{row.pk}"))
    assert facts["taskPrompt"] == "Write a slugify command.\n"
    assert (facts["sendKind"], facts["turnIndex"]) == ("parse_retry", 2)
    assert facts["retryOfAttemptId"] == facts["previousTurnAttemptId"] == row.previous_turn_attempt_id
    assert (facts["inputPacketVersion"], facts["inputCoverage"]) == (1, "complete")
    assert (facts["declaredInputCount"], facts["capturedInputCount"], facts["omittedInputCount"]) == (0, 0, 0)
    assert [one["seq"] for one in facts["inputs"]] == list(range(1, len(facts["inputs"]) + 1))
    assert set(facts["inputs"][0]) == {
        *("inputId", "seq", "label", "sourceKind", "deliveryMode", "sourcePath", "mediaType", "previewKind"),
        *("sizeBytes", "sha256", "captureStatus", "artifactStatus", "detail", "capturedAt"),
    }
    assert "userPrompt" not in facts and "reply" not in facts


def test_unknown_counts_are_null_in_the_collector(owner: Client, ada: User) -> None:  # AI-5 FA-11
    row = FactoryRun.objects.create(owner=ada, workflow="old", provider="pi")
    AgentAttempt.objects.create(attempt_id="a" * 32, run=row, number=1, phase="plan", provider="pi")
    facts = json.loads(page(owner, f"/api/collector/attempts/{'a' * 32}"))
    assert (facts["inputCoverage"], facts["declaredInputCount"], facts["taskPrompt"]) == ("not_recorded", None, None)


def test_a_name_that_is_not_utf8_survives_the_collector(owner: Client, built: int) -> None:  # FA-6
    row = input_of(built, label="notes.md")
    AgentAttemptInput.objects.filter(pk=row.pk).update(source_path="/x/\udcff")
    body = page(owner, f"/api/collector/attempts/{row.attempt_id}")
    assert '"/x/\\udcff"' in body


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


# Bringing a file ---------------------------------------------------------------------------------------------------


def uploaded(client: Client, name: str, data: bytes) -> Any:
    return client.post("/factory/import", {"file": SimpleUploadedFile(name, data)}, follow=True)


def test_a_session_file_becomes_a_run_of_whoever_brought_it(owner: Client, ada: User) -> None:  # IM-1
    data = (Path(factory.__file__).parent / "examples/session.jsonl").read_bytes()
    response = uploaded(owner, "session.jsonl", data)
    row = FactoryRun.objects.get()
    assert (row.owner, response.redirect_chain[-1][0]) == (ada, f"/factory/runs/{row.pk}")
    assert "records" in response.content.decode()
    again = uploaded(owner, "session.jsonl", data).content.decode()
    assert FactoryRun.objects.count() == 1
    assert "nothing new: pi session, whose 2 attempts were all here already." in again
    only_header = data.splitlines(keepends=True)[0].replace(b'"id": "', b'"id": "other-')
    assert "here already" not in uploaded(owner, "empty.jsonl", only_header).content.decode()


def test_bringing_a_file_says_what_its_hidden_records_are(owner: Client) -> None:  # IM-1
    data = (Path(factory.__file__).parent / "examples/session.jsonl").read_bytes()
    label = b'{"type": "label", "id": "new", "parentId": null, "timestamp": "2026-11-29T12:00:00Z"}\n'
    said = uploaded(owner, "session.jsonl", data + label).content.decode()
    assert "hidden (not part of the conversation, such as file snapshots or progress), 0 damaged" in said


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("<b>x</b>.jsonl", b"not a session"),
        ("trace.sqlite3", b"SQLite format 3\x00" + bytes(100)),
        ("empty", b""),
    ],
)
def test_a_file_that_is_none_of_ours_is_a_sentence(owner: Client, name: str, data: bytes) -> None:  # IM-1 SF-4
    response = uploaded(owner, name, data)
    assert response.status_code == 200
    assert 'class="flash error"' in response.content.decode()
    assert "<b>x</b>" not in response.content.decode()
    assert not FactoryRun.objects.exists()


def test_an_upload_that_is_too_large_is_refused_before_it_is_read(owner: Client) -> None:  # SF-6
    response = owner.post(
        "/factory/import", b"", content_type="multipart/form-data; boundary=x", CONTENT_LENGTH=str(10**9), follow=True
    )
    assert "20 MiB" in response.content.decode()


def test_an_upload_needs_the_forms_token(ada: User) -> None:  # SF-1
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    assert client.post("/factory/import", {"file": SimpleUploadedFile("x", b"x")}).status_code == 403


def test_nobody_brings_nothing(client_of: Callable[[User | None], Client]) -> None:  # SF-1
    response = client_of(None).post("/factory/import", {"file": SimpleUploadedFile("x", b"x")})
    assert response.status_code == 302 and response.headers["Location"].startswith("/login")
