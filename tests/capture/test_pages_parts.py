"""Parts of a turn on their own, and their exact text."""

import json
import re
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from capture.frozen import freeze
from capture.prompt import Prompt
from tests.capture import hands
from tests.capture.making import take_redis_away
from tests.pages import assert_no_inline_code, assert_valid_html

pytestmark = pytest.mark.django_db
TURN = {"table": "T-4", "hand": "184", "agent": "rocky", "turn": "1"}
HTMX = {"HX-Request": "true"}


@pytest.fixture
def operator(client: Client) -> User:
    user = User.objects.create_user("operator", is_staff=True)
    client.force_login(user)
    return user


@pytest.fixture(autouse=True)
def store(capture_redis: redis.Redis, operator: User) -> redis.Redis:
    return capture_redis


@pytest.mark.parametrize("part", ["knowledge", "prompt", "response", "reasoning"])
def test_a_part_is_a_page_to_a_browser_and_a_fragment_to_htmx(client: Client, store: redis.Redis, part: str) -> None:
    # VW-10
    hands.store(store, [hands.captured("rocky", 1, reasoning="I think.")])
    page = client.get("/agent-capture/part", TURN | {"part": part})
    fragment = client.get("/agent-capture/part", TURN | {"part": part}, headers=HTMX)
    for response in (page, fragment):
        assert response.status_code == 200
        assert "HX-Request" in response["Vary"]
        assert response["Cache-Control"] == "private, no-store"  # SF-2
        assert_valid_html(response)
        assert_no_inline_code(response)
    assert b"<h1" in page.content
    assert b"turn 1 of rocky" in page.content
    assert b"/agent-capture?table=T-4&amp;hand=184#t1-rocky" in page.content
    assert b"<h1" not in fragment.content


def test_the_prompt_opens_on_what_is_new_with_the_rest_closed(client: Client, store: redis.Redis) -> None:  # VW-2
    hands.store(store, [hands.captured("rocky", 1)])
    page = client.get("/agent-capture/part", TURN | {"part": "prompt"}, headers=HTMX).content.decode()
    assert re.search(r"<details>\s*<summary><b>The part that repeats", page)
    assert page.index("You are a no-limit") < page.index("[Table]\nHand 184")


def test_everything_that_was_known_is_in_its_part(client: Client, store: redis.Redis) -> None:  # CAP-3
    hands.store(store, [hands.captured("rocky", 1)])
    page = client.get("/agent-capture/part", TURN | {"part": "knowledge"}, headers=HTMX).content.decode()
    for word in (
        "deploymentId",
        "turnEndsAt",
        "1795960931000",
        "Nit folds to a second bet.",
        "rocky +20",
        "bluffy −20",
    ):
        assert word in page


def test_of_a_huge_argument_the_hand_shows_the_beginning_and_its_part_all_on_demand(
    client: Client, store: redis.Redis
) -> None:  # VW-2, VW-10, PF-4
    known = freeze({"question": "Raise?", "document": "a" * 1_100_000})
    hands.store(store, [hands.captured("rocky", 1, knowledge=known)])
    page = client.get("/agent-capture", {"table": "T-4", "hand": "184"}).content.decode()
    assert len(page) < 50_000
    assert "Raise?" in page
    assert "… the first 2,000 characters of 1,100,000" in page
    part = client.get("/agent-capture/part", TURN | {"part": "knowledge"})
    assert_valid_html(part)
    assert len(part.content) < 50_000
    assert "The beginning of 1.1 MB." in part.content.decode()
    whole = re.search(r'<a href="([^"]+)">Show all</a>', part.content.decode())
    assert whole
    assert "a" * 1_100_000 in client.get(whole[1].replace("&amp;", "&")).content.decode()


def test_a_response_over_the_limit_is_loaded_on_demand_and_shown_in_part(client: Client, store: redis.Redis) -> None:
    # VW-10
    text = "a" * 1_100_000
    hands.store(store, [hands.captured("rocky", 1, response=text)])
    page = client.get("/agent-capture", {"table": "T-4", "hand": "184"}).content.decode()
    assert len(page) < 50_000
    part = client.get("/agent-capture/part", TURN | {"part": "response"}).content.decode()
    assert "Showing 20.0 KB of 1.1 MB." in part
    whole = re.search(r'<a href="([^"]+)">Show all</a>', part)
    assert whole
    assert text in client.get(whole[1].replace("&amp;", "&")).content.decode()


EXACT = [
    "",
    "\nfirst newline",
    "a\r\nb\rc",
    "nul \0 in it",
    "\ufeffbom",
    "\u202ertl 🂡 👩‍👧",
    "x" * 1_000_000,
    "![a](http://10.0.0.1/x) <b>",
    '{"act":"fold"}',
    '"{\\"act\\":\\"fold\\"}"',
    "\\u4f60 is not 你",
]


@pytest.mark.parametrize("text", EXACT, ids=range(len(EXACT)))
def test_raw_is_the_stored_text_to_the_byte(client: Client, store: redis.Redis, text: str) -> None:  # CAP-9
    hands.store(store, [hands.captured("rocky", 1, response=text, prompt=Prompt("e\r\n" + text, text))])
    response = client.get("/agent-capture/raw", TURN | {"part": "response"})
    assert response.content == text.encode()
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    whole = Prompt("e\r\n" + text, text).text
    assert client.get("/agent-capture/raw", TURN | {"part": "prompt"}).content == whole.encode()


def test_text_that_is_not_utf8_is_shown_as_escapes_and_handed_out_as_bytes(client: Client, store: redis.Redis) -> None:
    # CAP-9
    hands.store(store, [hands.captured("rocky", 1, response="lone \ud83e")])
    assert b"\\ud83e" in client.get("/agent-capture/part", TURN | {"part": "response"}).content
    response = client.get("/agent-capture/raw", TURN | {"part": "response"})
    assert response.content == b"lone \xed\xa0\xbe"
    assert response["Content-Disposition"].startswith("attachment")


def test_raw_knowledge_and_messages_are_json_that_loses_nothing(client: Client, store: redis.Redis) -> None:  # CAP-9
    values = hands.arguments(
        ["Ah", "Ks"], odd={"nan": float("nan"), "none": None, "zero": 0, "lone": "\ud83e", "тест": 1}
    )
    hands.store(store, [hands.captured("rocky", 1, knowledge=freeze(values))])
    answer = client.get("/agent-capture/raw", TURN | {"part": "knowledge"})
    odd = json.loads(answer.content)["odd"]
    assert odd == {"nan": {"$float": "NaN"}, "none": None, "zero": 0, "lone": "\ud83e", "тест": 1}
    assert "тест" in answer.content.decode()
    sent = json.loads(client.get("/agent-capture/raw", TURN | {"part": "decision"}).content)
    assert sent[0]["action"] == "raise"


def test_what_was_captured_and_empty_is_an_empty_list(client: Client, store: redis.Redis) -> None:  # CAP-7
    hands.store(store, [hands.captured("rocky", 1, decision=[])])
    assert client.get("/agent-capture/raw", TURN | {"part": "decision"}).content == b"[]"


def test_reasoning_that_was_empty_is_recorded_and_empty_wherever_it_is_asked_for(
    client: Client, store: redis.Redis
) -> None:  # CAP-7
    hands.store(store, [hands.captured("rocky", 1, reasoning="")])
    assert client.get("/agent-capture/raw", TURN | {"part": "reasoning"}).content == b""
    part = client.get("/agent-capture/part", TURN | {"part": "reasoning"})
    assert (part.status_code, b"Recorded, and empty." in part.content) == (200, True)
    page = client.get("/agent-capture", {"table": "T-4", "hand": "184"}).content.decode()
    assert "<h3>Reasoning</h3>" in page
    hands.store(store, [hands.captured("rocky", 2, reasoning=None)], hand=185)
    page = client.get("/agent-capture", {"table": "T-4", "hand": "185"}).content.decode()
    assert "<h3>Reasoning</h3>" not in page


@pytest.mark.parametrize("part", ["knowledge", "decision", "reasoning"])
def test_what_was_not_recorded_is_404_not_empty(client: Client, store: redis.Redis, part: str) -> None:  # CAP-7
    hands.store(store, [hands.captured("rocky", 1, knowledge=None, decision=None)])
    response = client.get("/agent-capture/raw", TURN | {"part": part})
    assert response.status_code == 404
    assert response.content == b"This part was not recorded for this turn."


def test_a_part_that_expired_is_gone_and_says_why(client: Client, store: redis.Redis) -> None:  # VW-6
    hands.store(store, [hands.expired("rocky", 1)], at=hands.days_ago(2))
    for headers in ({}, HTMX):
        response = client.get("/agent-capture/part", TURN | {"part": "prompt"}, headers=headers)
        assert response.status_code == 410
        assert b"captured turns live 24 hours" in response.content


@pytest.mark.parametrize("path", ["part", "raw"])
def test_what_a_silent_buffer_may_have_is_neither_gone_nor_unknown(
    client: Client, store: redis.Redis, settings: Any, path: str
) -> None:  # VW-6, SF-5
    hands.store(store, [hands.captured("rocky", 1), hands.fallback("rocky", 2)])
    take_redis_away(settings)
    for turn, status in (("1", 503), ("99", 503), ("2", 404)):
        response = client.get(f"/agent-capture/{path}", TURN | {"part": "prompt", "turn": turn})
        assert response.status_code == status
        assert (b"The capture Redis does not answer" in response.content) == (status == 503)


def test_a_fallback_has_no_parts(client: Client, store: redis.Redis) -> None:  # CAP-2
    hands.store(store, [hands.fallback("rocky", 1)])
    response = client.get("/agent-capture/part", TURN | {"part": "prompt"})
    assert response.status_code == 404
    assert b"No decision was made" in response.content


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"turn": "99"}, 404),
        ({"agent": "nit"}, 404),
        ({"hand": "185"}, 404),
        ({"part": "nothing"}, 404),
        ({"hand": "x"}, 400),
        ({"hand": "-1"}, 400),
        ({"hand": "9" * 30}, 400),
        ({"turn": ""}, 400),
        ({"turn": "²"}, 400),
        ({"agent": ""}, 400),
        ({"agent": "a\0b"}, 400),
        ({"table": "t" * 300}, 400),
        ({"agent": "<script>"}, 404),
    ],
)
@pytest.mark.parametrize("path", ["part", "raw"])
def test_a_question_that_makes_no_sense_is_refused_in_words(
    client: Client, store: redis.Redis, path: str, changed: dict[str, str], status: int
) -> None:  # SF-4
    hands.store(store, [hands.captured("rocky", 1)])
    response = client.get(f"/agent-capture/{path}", TURN | {"part": "prompt"} | changed)
    assert response.status_code == status
    assert response.content
    assert b"<script>" not in response.content.replace(b'<script type="module"', b"")


def test_a_search_goes_on_in_a_part_that_is_loaded(client: Client, store: redis.Redis) -> None:
    hands.store(store, [hands.captured("rocky", 1)])
    page = client.get("/agent-capture/part", TURN | {"part": "prompt", "q": "strategy"}, headers=HTMX)
    assert b"<mark>Strategy</mark>" in page.content
