"""Keeping a hand: honest outcomes, one set of rows, and nothing half-kept."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.contrib.auth.models import User
from django.db import OperationalError, connection, connections
from django.utils import timezone

from agentlab.common.models import AuditEntry, Deed
from capture.buffer import BufferUnavailable
from capture.durable import to_row
from capture.keeping import outcome
from capture.models import AgentCallRecord
from capture.pinning import Outcome, PinResult, pin, unpin
from capture.prompt import Prompt
from capture.reading import read_hand
from capture.sources import LocalHands, SourceError
from tests.capture.elsewhere import host_that
from tests.capture.making import HAND, TABLE, charge, charge_all, play, take_redis_away, turn, write
from tests.capture.test_buffer import put_another_kind
from tests.faults.proxy import Proxy

pytestmark = pytest.mark.usefixtures("capture_redis")
ROOT = Path(__file__).parents[2]


def keep(agent: str = "rocky", hand: int = HAND) -> PinResult:
    return pin(TABLE, hand, agent_id=agent, actor=None)


def rows() -> list[tuple[str, int]]:
    return sorted(AgentCallRecord.objects.values_list("agent_id", "action_index"))


@pytest.mark.django_db
def test_a_pin_copies_one_agents_turns_and_nothing_of_a_rivals() -> None:  # PIN-1
    play([turn("rocky", 0), turn("nit", 1), turn("rocky", 2)])
    assert keep() == PinResult(Outcome.PINNED, pinned=2, kept=2, turns=2, expired=0, lost=0, pending=0)
    assert rows() == [("rocky", 0), ("rocky", 2)]


@pytest.mark.django_db
def test_two_agents_that_share_an_action_index_are_both_kept() -> None:  # PIN-3
    play([turn("rocky", 3), turn("nit", 3)])
    assert keep("rocky").pinned == keep("nit").pinned == 1


@pytest.mark.django_db
def test_pinning_again_inserts_nothing_and_says_so() -> None:  # PIN-3
    play([turn("rocky", 0)])
    keep()
    before = AgentCallRecord.objects.get().pk
    assert keep() == PinResult(Outcome.ALREADY_PINNED, pinned=0, kept=1, turns=1, expired=0, lost=0, pending=0)
    assert AgentCallRecord.objects.get().pk == before


@pytest.mark.django_db
def test_a_rivals_kept_turns_do_not_make_mine_kept() -> None:  # PIN-2
    play([turn("nit", 0)])
    keep("nit")
    assert keep("rocky").outcome == Outcome.NOTHING_TO_CAPTURE


@pytest.mark.django_db
def test_a_pin_while_the_hand_is_played_keeps_what_there_is_and_the_next_one_the_rest() -> None:  # PIN-2
    play([turn("rocky", 0)])
    assert (keep().pinned, keep().pinned) == (1, 0)
    play([turn("rocky", 4), turn("rocky", 7)])
    assert keep() == PinResult(Outcome.PINNED, pinned=2, kept=3, turns=3, expired=0, lost=0, pending=0)


@pytest.mark.django_db
def test_what_cannot_be_kept_is_counted_by_reason(capture_redis: redis.Redis) -> None:  # PIN-2
    play([turn("rocky", 0), turn("rocky", 1)])
    charge_all(
        charge("rocky", 2, capture_outcome="dropped", capture_reason="buffer full"),
        charge("rocky", 3, capture_outcome="failed", capture_reason="Redis is down"),
        charge("rocky", 4, capture_outcome="pending"),
        charge("rocky", 5, is_fallback=True),
        charge("nit", 6),
    )
    capture_redis.delete(f"turn:{{{TABLE}:{HAND}}}:rocky:1")
    assert keep() == PinResult(Outcome.PINNED, pinned=1, kept=1, turns=5, expired=1, lost=2, pending=1)


@pytest.mark.django_db
def test_a_hand_of_fallbacks_alone_has_nothing_to_keep() -> None:  # PIN-2, CAP-2
    charge_all(charge("rocky", 0, is_fallback=True))
    assert keep() == PinResult(Outcome.NOTHING_TO_CAPTURE, pinned=0, kept=0, turns=0, expired=0, lost=0, pending=0)


@pytest.mark.django_db
def test_an_expired_hand_has_nothing_to_keep_and_a_kept_one_is_already_kept(capture_redis: redis.Redis) -> None:
    # PIN-2
    play([turn("rocky", 0), turn("nit", 1)])
    keep("nit")
    capture_redis.flushdb()
    assert keep("rocky") == PinResult(Outcome.NOTHING_TO_CAPTURE, 0, 0, turns=1, expired=1, lost=0, pending=0)
    assert keep("nit").outcome == Outcome.ALREADY_PINNED


@pytest.mark.django_db
def test_a_turn_whose_envelope_is_gone_is_not_kept_as_if_it_were_whole(capture_redis: redis.Redis) -> None:  # PIN-2
    play([turn("rocky", 0)])
    capture_redis.delete(f"env:{turn('rocky').prompt.envelope_hash}")
    assert keep() == PinResult(Outcome.NOTHING_TO_CAPTURE, 0, 0, turns=1, expired=0, lost=0, pending=0, damaged=1)
    assert rows() == []


@pytest.mark.django_db
def test_a_damaged_turn_is_counted_as_damaged_unless_it_is_kept(capture_redis: redis.Redis) -> None:  # PIN-2
    play([turn("rocky", index) for index in range(4)])
    charge_all(charge("rocky", 4, capture_outcome="pending"))
    write(turn("rocky", 4), turn("rocky", 5))  # 5: before the ledger has heard of it
    capture_redis.delete(f"turn:{{{TABLE}:{HAND}}}:rocky:3")
    for index in (1, 4, 5):
        put_another_kind(capture_redis, f"turn:{{{TABLE}:{HAND}}}:rocky:{index}")
    assert keep() == PinResult(Outcome.PINNED, pinned=2, kept=2, turns=6, expired=1, lost=0, pending=0, damaged=3)
    put_another_kind(capture_redis, f"turn:{{{TABLE}:{HAND}}}:rocky:0")
    again = PinResult(Outcome.ALREADY_PINNED, pinned=0, kept=2, turns=6, expired=1, lost=0, pending=0, damaged=3)
    assert keep() == again
    assert outcome("Rocky", again).text == "Rocky: already kept, 2 turns; of its 6 turns 1 expired and 3 damaged"
    assert rows() == [("rocky", 0), ("rocky", 2)]


@pytest.mark.django_db
def test_a_damaged_list_of_turns_is_made_good_by_the_ledger_and_never_taken_for_an_empty_one(
    capture_redis: redis.Redis,
) -> None:  # PIN-2
    play([turn("rocky", 0), turn("rocky", 1)])
    put_another_kind(capture_redis, f"hand:{{{TABLE}:{HAND}}}:rocky")
    assert keep() == PinResult(Outcome.PINNED, pinned=2, kept=2, turns=2, expired=0, lost=0, pending=0)
    put_another_kind(capture_redis, f"hand:{{{TABLE}:{HAND + 1}}}:rocky")
    with pytest.raises(SourceError, match="its list of turns is damaged"):
        LocalHands().pin(TABLE, HAND + 1, agent_id="rocky", actor=None)


@pytest.mark.django_db
def test_a_silent_redis_is_an_error_and_never_an_outcome(settings) -> None:  # PIN-2
    play([turn("rocky", 0)])
    keep()
    take_redis_away(settings)
    with pytest.raises(BufferUnavailable):
        keep()
    with pytest.raises(SourceError) as raised:
        LocalHands().pin(TABLE, HAND, agent_id="rocky", actor=None)
    assert raised.value.status == 503


@pytest.mark.django_db
def test_a_hanging_redis_is_given_up_and_is_an_error_too(settings) -> None:  # SF-5, PIN-2
    enough = threading.Event()
    with host_that(lambda client: enough.wait(30)) as url:
        where = url.replace("http", "redis")
        settings.CACHES = {**settings.CACHES, "capture": {**settings.CACHES["capture"], "LOCATION": where}}
        with pytest.raises(BufferUnavailable, match="timed out"):
            keep()
        assert not read_hand(TABLE, HAND, agent_id="rocky").buffer_answered
    enough.set()


@pytest.mark.django_db
def test_playing_adds_no_row_and_only_pins_do() -> None:  # PIN-4, E-AFT-5
    for hand in range(20):
        play([turn("rocky", index, hand=hand) for index in range(5)])
    assert rows() == []
    keep(hand=3)
    assert len(rows()) == 5


@pytest.mark.django_db
def test_the_version_is_stamped_from_the_record_else_from_the_ledgers_row_of_the_same_turn() -> None:  # PIN-5
    write(turn("rocky", 0), *(turn("rocky", index, agent_version_id=None) for index in (1, 2)))
    charge_all(charge("rocky", 1, agent_version_id="rocky-v1"), charge("nit", 2, agent_version_id="nit-v9"))
    keep()
    versions = dict(AgentCallRecord.objects.values_list("action_index", "agent_version_id"))
    assert versions == {0: "rocky-v3", 1: "rocky-v1", 2: None}
    assert [view.agent_version_id for view in read_hand(TABLE, HAND, agent_id="rocky").turns] == list(versions.values())


@pytest.mark.django_db
def test_un_keeping_lets_go_of_ones_own_turns_and_tells_how_many() -> None:  # PIN-2
    play([turn("rocky", 0), turn("rocky", 1), turn("nit", 2)])
    keep("rocky"), keep("nit")
    assert unpin(TABLE, HAND, agent_id="rocky", actor=None) == 2
    assert unpin(TABLE, HAND, agent_id="rocky", actor=None) == 0
    assert rows() == [("nit", 2)]


@pytest.mark.django_db
def test_letting_go_takes_no_prompt_from_whoever_was_told_the_same(capture_redis: redis.Redis) -> None:  # PIN-2 CAP-8
    prompt = Prompt("an envelope that two agents share", "x")
    play([turn("rocky", 0, prompt=prompt), turn("nit", 1, prompt=prompt)])
    keep("rocky"), keep("nit")
    unpin(TABLE, HAND, agent_id="rocky", actor=None)
    (still,) = read_hand(TABLE, HAND, agent_id="rocky").turns  # its day is not over
    assert (still.kept, still.turn.prompt) == (False, prompt)
    capture_redis.flushdb()
    (kept,) = read_hand(TABLE, HAND, agent_id="nit").turns
    assert (kept.kept, kept.turn.prompt) == (True, prompt)


@pytest.mark.django_db
def test_the_audit_names_who_kept_and_un_kept_and_counts_only_what_happened() -> None:  # VW-5
    ann = User.objects.create_user("ann")
    play([turn("rocky", 0)])
    for actor in (ann, ann, None):
        pin(TABLE, HAND, agent_id="rocky", actor=actor)
    unpin(TABLE, HAND, agent_id="rocky", actor=None)
    entries = AuditEntry.objects.order_by("id").values_list("actor_name", "deed", "agent_id", "hand_number", "detail")
    assert list(entries) == [
        ("ann", Deed.KEPT, "rocky", HAND, "1 turn"), ("service", Deed.UNKEPT, "rocky", HAND, "1 turn"),
    ]  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("field", ["agent_id", "table_id"])
def test_the_table_itself_refuses_a_row_without_its_agent(field: str) -> None:  # PIN-3
    from django.db import IntegrityError, transaction

    row = to_row(turn(), agent_version_id=None, pinned_at=timezone.now())
    for nothing in ("", None):
        setattr(row, field, nothing)
        with pytest.raises(IntegrityError), transaction.atomic():
            row.save()


# ---- races

ASKERS, PINS = 2, 50


def _pins_in_threads(rounds: int, threads: int) -> list[list[int]]:
    """`threads` pins of one hand at once, again and again; what each round's answers report."""
    reported: list[list[int]] = []
    for round_number in range(rounds):
        play([turn("rocky", index, hand=round_number) for index in range(4)])
        start = threading.Barrier(threads)
        answers: list[int] = []

        def one(hand: int = round_number, start: threading.Barrier = start, answers: list[int] = answers) -> None:
            start.wait()
            try:
                answers.append(keep(hand=hand).pinned)
            finally:
                connections.close_all()

        workers = [threading.Thread(target=one) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        reported.append(answers)
    return reported


@pytest.mark.django_db(transaction=True)
def test_pins_at_once_by_threads_insert_one_set_of_rows_and_report_it_once() -> None:  # PIN-3
    for answers in _pins_in_threads(rounds=10, threads=4):
        assert (len(answers), sum(answers)) == (4, 4)
    assert AgentCallRecord.objects.count() == 40


CHILD = """
import json, sys, django
django.setup()
from django.db import connection
from django.conf import settings
settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = sys.argv[1]
from capture.pinning import pin
print("ready", flush=True)
sys.stdin.readline()
pinned = [pin("T-1", hand, agent_id="rocky", actor=None).pinned for hand in range(int(sys.argv[2]))]
print(json.dumps(pinned), flush=True)
"""


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="two processes on PostgreSQL: DATABASE_URL names none")
def test_pins_at_once_by_two_processes_on_postgresql_insert_one_set_of_rows(capture_redis_server: str) -> None:  # PIN-3
    for hand in range(PINS):
        play([turn("rocky", index, hand=hand) for index in range(4)])
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "agentlab.settings", "PYTHONPATH": str(ROOT)}
    environment["AGENT_CAPTURE_REDIS_URL"] = capture_redis_server
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, connection.settings_dict["NAME"], str(PINS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT,
        )
        for _ in range(ASKERS)
    ]  # fmt: skip
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    answers = [json.loads(child.communicate()[0]) for child in children]
    assert [sum(pinned) for pinned in zip(*answers, strict=True)] == [4] * PINS
    assert AgentCallRecord.objects.count() == 4 * PINS


# ---- the database goes away in the middle


@pytest.fixture
def cut_database() -> Iterator[Proxy]:
    """The test's PostgreSQL reached through a wire that can be cut."""
    if connection.vendor != "postgresql":
        pytest.skip("a wire to PostgreSQL is cut: DATABASE_URL names none")
    given = connection.settings_dict
    proxy = Proxy((given["HOST"], int(given["PORT"] or 5432)))
    before = (given["HOST"], given["PORT"], given["OPTIONS"])
    connection.close()
    connection.close_pool()
    given.update(HOST="127.0.0.1", PORT=str(proxy.port), OPTIONS={"connect_timeout": 2})
    yield proxy
    connection.close()
    given["HOST"], given["PORT"], given["OPTIONS"] = before
    proxy.close()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", ["before the rows", "between the rows and the commit"])
def test_a_database_cut_in_the_middle_of_a_pin_leaves_all_or_nothing_and_the_next_pin_is_whole(
    cut_database: Proxy, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:  # SF-5, PIN-2
    from capture import pinning

    play([turn("rocky", index) for index in range(4)])
    insert = pinning._insert_new

    def cut(rows: list[AgentCallRecord]) -> int:
        if moment == "before the rows":
            cut_database.cut()
        inserted = insert(rows)
        cut_database.cut()
        return inserted

    monkeypatch.setattr(pinning, "_insert_new", cut)
    with pytest.raises(OperationalError):
        keep()
    monkeypatch.undo()
    connection.close()
    cut_database.mend()
    assert rows() == []
    assert keep() == PinResult(Outcome.PINNED, pinned=4, kept=4, turns=4, expired=0, lost=0, pending=0)
