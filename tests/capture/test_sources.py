"""Hands from another host: the same hands, and a sentence where there is no answer."""

import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agentlab.agents.models import Agent
from agentlab.common.models import AuditEntry
from capture import sources
from capture.models import AgentCallRecord
from capture.sources import HandSource, LocalHands, RemoteHands, SourceError, hand_source
from tests.capture.elsewhere import KEY, answering, host_that, real_host
from tests.capture.making import HAND, TABLE, charge, charge_all, play, result, turn, write


@pytest.fixture(scope="module")
def other_url(django_db_setup: None, capture_redis_server: str) -> Iterator[str]:
    with real_host(capture_redis_server) as url:
        yield url


@pytest.fixture
def both(transactional_db: None, other_url: str, capture_redis: redis.Redis) -> list[HandSource]:
    return [LocalHands(), RemoteHands(other_url, KEY)]


@pytest.fixture
def ann() -> User:
    return User.objects.create_user("ann")


@pytest.mark.django_db
def test_without_an_address_the_hands_are_ours(settings) -> None:  # RD-5
    settings.HOSTED_AGENT_URL = ""
    assert isinstance(hand_source(), LocalHands)
    settings.HOSTED_AGENT_URL = "https://other"
    assert isinstance(hand_source(), RemoteHands)


def test_both_sources_give_the_same_hands_lists_days_and_outcomes(both: list[HandSource]) -> None:  # RD-5
    text = "\0 \ud83e \ud83d\ude00 😀 \u202e <b>$5</b> \r\n"
    play(
        [
            turn("rocky", 0, response=text, change="clamp", asked_amount=500),
            turn("nit", 1),
            turn("rocky", 2, decision=[]),
        ]
    )
    write(turn("rocky", 3, knowledge=None, decision=None))
    charge_all(charge("rocky", 4, is_fallback=True, fallback_reason="timed out"), charge("rocky", 9, hand=8))
    charge_all(charge("rocky", 5, change="clamp"), charge("rocky", 6, change="", note=""))
    charge_all(charge("rocky", 7, note="reconnected"))
    result("rocky", -48)
    result("nit", 48)
    result("rocky", 5, hand=8, ended_at=timezone.now())
    ours, theirs = both
    assert ours.read_hand_all(TABLE, HAND).net == {"nit": 48, "rocky": -48}
    assert (ours.silence(), theirs.silence()) == ("", "")
    assert theirs.read_hand(TABLE, HAND, agent_id="rocky") == ours.read_hand(TABLE, HAND, agent_id="rocky")
    assert theirs.read_hand_all(TABLE, HAND) == ours.read_hand_all(TABLE, HAND)
    assert theirs.recent_hands() == ours.recent_hands()
    assert theirs.recent_hands(agent_ids=["nit"]) == ours.recent_hands(agent_ids=["nit"])
    page = ours.recent_hands(limit=1)
    assert theirs.recent_hands(page.next_before, 1) == ours.recent_hands(page.next_before, 1)
    assert theirs.recent_hands(only="fallback") == ours.recent_hands(only="fallback") != ours.recent_hands()
    assert theirs.recent_hands(only="reconnected") == ours.recent_hands(only="reconnected")
    for hand in (HAND, 8, 99):
        assert theirs.neighbours(TABLE, hand, agent_id="rocky") == ours.neighbours(TABLE, hand, agent_id="rocky")
        assert theirs.neighbours_all(TABLE, hand) == ours.neighbours_all(TABLE, hand)
    assert theirs.last_day(["rocky", "nobody"]) == ours.last_day(["rocky", "nobody"])


def test_keeping_over_there_is_noted_here_and_there(both: list[HandSource], ann: User) -> None:  # RD-5, PIN-2
    play([turn("rocky", 0), turn("rocky", 1)])
    theirs = both[1]
    first = theirs.pin(TABLE, HAND, agent_id="rocky", actor=ann)
    assert (first.outcome, first.pinned, AgentCallRecord.objects.count()) == ("pinned", 2, 2)
    assert theirs.pin(TABLE, HAND, agent_id="rocky", actor=ann).outcome == "already_pinned"
    assert theirs.recent_hands(kept=True) == both[0].recent_hands(kept=True)
    assert theirs.unpin(TABLE, HAND, agent_id="rocky", actor=ann) == 2
    noted = AuditEntry.objects.order_by("id").values_list("actor_name", "deed")
    assert list(noted) == [("service", "kept"), ("ann", "kept"), ("service", "unkept"), ("ann", "unkept")]


def test_what_cannot_be_asked_is_refused_alike(both: list[HandSource]) -> None:  # SF-4
    for source in both:
        with pytest.raises(ValueError, match=r"^The agent"):
            source.read_hand(TABLE, HAND, agent_id="a\0b")
        with pytest.raises(ValueError):
            source.recent_hands("no cursor")
        with pytest.raises(ValueError):
            source.recent_hands(only="odd")
        assert source.recent_hands(agent_ids=[]).hands == []
        assert source.last_day([]) == {}


def test_a_hand_of_a_host_without_its_redis_says_so(settings, both: list[HandSource]) -> None:  # RD-2
    play([turn("rocky", 0)])
    with real_host("redis://127.0.0.1:1/0") as url:
        source = RemoteHands(url, KEY)
        assert not source.read_hand(TABLE, HAND, agent_id="rocky").buffer_answered
        assert "Redis is down" in source.silence()
        with pytest.raises(SourceError, match="Redis is down") as raised:
            source.pin(TABLE, HAND, agent_id="rocky", actor=None)
    assert raised.value.status == 503


def test_a_wrong_key_is_said_and_shown_to_nobody(both: list[HandSource]) -> None:  # RD-5
    with pytest.raises(SourceError, match="refused our service key") as raised:
        RemoteHands(both[1]._url, "wrong").read_hand_all(TABLE, HAND)
    assert "wrong" not in str(raised.value)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"captureRedis": "elsewhere"}', b"[" * 100_000])
def test_a_host_that_does_not_say_how_its_redis_is_leaves_it_unknown(body: bytes) -> None:  # RD-5, CAP-10
    with host_that(answering("200 OK", body)) as url:
        assert RemoteHands(url, KEY).silence() == ""
    assert RemoteHands("http://127.0.0.1:1", KEY).silence() == ""


# ---- pages and proxy over another host


def test_pages_and_proxy_read_the_other_hosts_hands(
    settings, both: list[HandSource], admin_client: Client, ann: User
) -> None:  # RD-5
    play([turn("rocky", 0, response="said over there")])
    Agent.objects.create(id="rocky", name="Rocky", owner=ann)
    settings.HOSTED_AGENT_URL, settings.AGENT_CAPTURE_SERVICE_KEY = both[1]._url, KEY
    settings.CACHES = {
        **settings.CACHES,
        "capture": {**settings.CACHES["capture"], "LOCATION": "redis://127.0.0.1:1/0"},
    }
    where = {"table": TABLE, "hand": str(HAND)}
    pages = [admin_client.get("/agent-capture", where), admin_client.get("/api/hosted-agent/hand-all", names(where))]
    admin_client.force_login(ann)
    pages += [admin_client.get("/agents/rocky/hand", where)]
    for page in pages:
        assert "said over there" in page.content.decode()
        assert KEY not in page.content.decode() + str(page.headers)


def names(where: dict[str, str]) -> dict[str, str]:
    return {"tableId": where["table"], "handNumber": where["hand"]}


# ---- hosts that misbehave

HAND_JSON = json.dumps({"tableId": TABLE, "handNumber": HAND, "bufferAnswered": True, "turns": []}).encode()
ERROR = b'{"error": {"code": "x", "message": "Redis is <b>down</b>"}}'


def deep(depth: int) -> bytes:
    return b"[" * depth


MISBEHAVIOURS: dict[str, tuple[Any, str, int]] = {
    "ends at once": (lambda client: None, "cannot be reached", 502),
    "speaks no HTTP": (lambda client: client.sendall(b"SSH-2.0-x\r\n"), "cannot be reached", 502),
    "refuses": (answering("403 Forbidden", b"{}"), "refused our service key", 502),
    "breaks": (answering("500 Oops", b"<html>Traceback secret-word"), "status 500", 502),
    "knows nothing of it": (answering("404 Not Found"), "status 404", 502),
    "sends elsewhere": (answering("302 Found", b"", "Location: http://127.0.0.1:1/"), "status 302", 502),
    "is unwell": (answering("503 Unavailable", ERROR), "Redis is <b>down</b>", 503),
    "is unwell without a word": (answering("503 Unavailable", b"[]"), "gave no reason", 503),
    "is too busy": (answering("429 Too Many", b"{}"), "status 429", 502),
    "says no JSON": (answering("200 OK", b"<html>"), "cannot be read", 502),
    "says nothing": (answering("200 OK", b""), "cannot be read", 502),
    "says another thing": (answering("200 OK", b'{"turns": 5}'), "cannot be read", 502),
    "says half a hand": (answering("200 OK", HAND_JSON.replace(b"[]", b"[{}]")), "cannot be read", 502),
    "nests without end": (answering("200 OK", deep(200_000)), "cannot be read", 502),
    "compresses": (answering("200 OK", b"\x1f\x8b\x08", "Content-Encoding: gzip"), "cannot be read", 502),
    "stops halfway": (lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), "cannot be reached", 502),
}


@pytest.mark.parametrize("how", MISBEHAVIOURS)
def test_a_host_that_misbehaves_becomes_one_sentence(how: str) -> None:  # RD-5, SF-4
    talk, sentence, status = MISBEHAVIOURS[how]
    with host_that(talk) as url, pytest.raises(SourceError, match=sentence) as raised:
        RemoteHands(url, KEY).read_hand_all(TABLE, HAND)
    assert raised.value.status == status
    assert "secret-word" not in str(raised.value)


def test_of_a_host_that_says_nothing_of_results_none_is_known() -> None:  # RD-5, CAP-7
    hand = b'{"tableId":"T-1","handNumber":7,"turns":1,"fallbacks":0,"kept":0,"lost":0,"agentIds":["rocky"],'
    listed = b'{"hands":[' + hand + b'"actions":["call"],"lastPlayedAt":"2026-11-01T12:00:00Z"}]}'
    day = b'{"agents":{"rocky":{"turns":1,"fallbacks":0,"keptHands":0}}}'
    with host_that(answering("200 OK", HAND_JSON)) as url:
        assert RemoteHands(url, KEY).read_hand_all(TABLE, HAND).net == {}
    with host_that(answering("200 OK", listed)) as url:
        assert RemoteHands(url, KEY).recent_hands().hands[0].net == {}
    with host_that(answering("200 OK", day)) as url:
        assert RemoteHands(url, KEY).last_day(["rocky"])["rocky"].net is None


def test_a_host_that_is_not_there_becomes_one_sentence() -> None:  # RD-5
    for url in ("http://127.0.0.1:1", "http://no-such-host.invalid", "http://[::1", "nonsense"):
        with pytest.raises(SourceError, match="cannot be reached"):
            RemoteHands(url, KEY).read_hand_all(TABLE, HAND)


def test_a_host_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:  # RD-5
    monkeypatch.setattr(sources, "SECONDS_TO_READ", 0.2)
    enough = threading.Event()
    with host_that(lambda client: enough.wait(30)) as url, pytest.raises(SourceError, match="in time") as raised:
        RemoteHands(url, KEY).read_hand_all(TABLE, HAND)
    enough.set()
    assert raised.value.status == 504


def test_a_host_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:  # RD-5
    monkeypatch.setattr(sources, "SECONDS_IN_ALL", 0.2)

    def drip(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n")
        pause = threading.Event()
        while True:
            client.sendall(b" ")
            pause.wait(0.02)

    with host_that(drip) as url, pytest.raises(SourceError, match="too slowly") as raised:
        RemoteHands(url, KEY).read_hand_all(TABLE, HAND)
    assert raised.value.status == 504


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:  # RD-5
    monkeypatch.setattr(sources, "LARGEST_ANSWER", 1_000_000)

    def flood(client: socket.socket) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            client.sendall(b" " * 65536)

    with host_that(flood) as url, pytest.raises(SourceError, match="too large"):
        RemoteHands(url, KEY).read_hand_all(TABLE, HAND)


@pytest.mark.django_db
def test_a_host_in_trouble_is_a_readable_page_everywhere(settings, admin_client: Client, ann: User) -> None:  # RD-5
    Agent.objects.create(id="rocky", name="Rocky", owner=ann)
    settings.HOSTED_AGENT_URL = "http://127.0.0.1:1"
    owner = Client()
    owner.force_login(ann)
    where = {"table": TABLE, "hand": HAND}
    for client, path in [
        (admin_client, "/agent-capture"), (owner, "/agents/rocky"), (owner, "/agents/rocky/kept"),
        (owner, "/agents/rocky/hand"), (owner, "/agents/rocky/unkeep"),
    ]:  # fmt: skip
        page = client.get(path, where)
        assert page.status_code == 502
        assert "The hosted agent cannot be reached." in page.content.decode()
    assert "cannot be reached" in owner.get("/agents").content.decode()
    kept = owner.post("/agents/rocky/keep", where, follow=True).content.decode()
    assert "cannot be reached" in kept
