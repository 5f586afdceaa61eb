"""The ledger's writer against a real database and a real spool file."""

import contextlib
import itertools
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.db import connection
from django.db.models import Sum

from agentlab.agents.charge import TEXT_LIMITS, fit
from agentlab.agents.ledger import Charge, LedgerWriter, SpoolError
from agentlab.agents.models import InferenceCharge
from agentlab.agents.spool import Spool

pytestmark = pytest.mark.django_db(transaction=True)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def charge(index: int = 0, **changes: Any) -> Charge:
    facts: dict[str, Any] = {
        "agent_id": "rocky",
        "table_id": "T-1",
        "hand_number": 7,
        "action_index": index,
        "played_at": NOON,
        "agent_version_id": "rocky-v3",
        "deployment_id": 4,
        "model": "house-1",
        "routing": "local",
        "input_tokens": 2104,
        "output_tokens": 88,
        "cost": Decimal("0.0031"),
        "duration_ms": 1900,
        "action": "raise",
        "amount": 200,
    }
    return Charge(**{**facts, **changes})


def say(writer: LedgerWriter, index: int, outcome: str, reason: str = "") -> None:
    writer.outcome(agent_id="rocky", table_id="T-1", hand_number=7, action_index=index, outcome=outcome, reason=reason)


def row(index: int = 0) -> InferenceCharge:
    return InferenceCharge.objects.get(table_id="T-1", hand_number=7, agent_id="rocky", action_index=index)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LedgerWriter]:
    writer = LedgerWriter(tmp_path / "ledger.spool")
    yield writer
    writer.close(5)


class table_away:
    """The ledger's table is not there: what a database that cannot be used looks like, on either store."""

    def __enter__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE agent_inference_charges RENAME TO elsewhere")

    def __exit__(self, *_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO agent_inference_charges")


def test_a_turn_becomes_one_row_with_all_its_facts(writer: LedgerWriter) -> None:  # HA-10
    writer.charge(charge())
    assert writer.flush(10)
    kept, facts = row(), dict(charge().__dict__)
    del facts["heard"]  # is written to the whispers
    assert {name: getattr(kept, name) for name in facts} == facts


def test_counts_beyond_32_bits_are_kept_and_their_sums_too(writer: LedgerWriter) -> None:  # HA-10
    many = 3_000_000_000
    for index in range(3):
        writer.charge(charge(index, input_tokens=many, output_tokens=many, amount=many, duration_ms=many))
    assert writer.flush(10)
    assert (row().input_tokens, row().amount, row().duration_ms) == (many, many, many)
    sums = InferenceCharge.objects.aggregate(tokens=Sum("input_tokens"), chips=Sum("amount"))
    assert sums == {"tokens": 3 * many, "chips": 3 * many}


@pytest.mark.parametrize("word", [None, "", "clamp", "a word of later"])
def test_what_became_of_a_choice_is_kept_and_not_known_is_not_nothing(
    writer: LedgerWriter, word: str | None
) -> None:  # HA-10
    writer.charge(charge(change=word, note=word))
    assert writer.flush(10)
    assert (row().change, row().note) == (word, word)


def spool_as_of(tmp_path: Path, **changes: Any) -> None:
    """A charge as a writer of another version left it in the spool; a change of None leaves the key out."""
    LedgerWriter(tmp_path / "spool").close(5)
    entry = {**msgspec.msgpack.decode(msgspec.msgpack.encode(charge())), **changes}
    body = msgspec.msgpack.encode({name: value for name, value in entry.items() if value is not None})
    with contextlib.closing(sqlite3.connect(tmp_path / "spool")) as spool, spool:
        spool.execute("INSERT INTO entries (key, kind, body, at) VALUES (x'00', 'Charge', ?, 0)", (body,))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"change": None, "note": None}, None),
        ({"change": "rounded", "weather": "fair"}, "rounded"),
        ({"change": "x" * 20}, "x" * 20),
    ],
    ids=["an older one", "a newer one", "as long as there is room for"],
)
def test_what_another_version_left_in_the_spool_is_written(
    tmp_path: Path, changes: dict[str, Any], word: str | None
) -> None:  # HA-10, SF-5
    spool_as_of(tmp_path, **changes)
    writer = LedgerWriter(tmp_path / "spool")
    assert writer.close(10)
    assert (row().change, row().amount, writer.stats.lost) == (word, 200, 0)


def test_a_row_by_whoever_knows_no_word_for_it_is_not_known() -> None:  # HA-10
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO agent_inference_charges (agent_id, table_id, hand_number, action_index, model, routing, "
            "played_at, action, is_fallback, fallback_reason, capture_outcome, capture_reason) VALUES "
            "('rocky', 'T-1', 7, 0, '', '', '2026-07-01 12:00:00', 'call', FALSE, '', 'recorded', '')"
        )
    assert (row().change, row().note) == (None, None)


def test_a_fallback_has_its_reason_and_no_capture(writer: LedgerWriter) -> None:  # HA-10, CAP-2
    writer.charge(charge(is_fallback=True, fallback_reason="the model timed out", capture_outcome="none"))
    say(writer, 0, "recorded")
    assert writer.flush(10)
    assert (row().is_fallback, row().fallback_reason, row().capture_outcome) == (True, "the model timed out", "none")


def test_row_outcome_and_repeated_row_merge_in_any_order(writer: LedgerWriter) -> None:  # HA-10
    orders = list(itertools.permutations(["row", "outcome", "again"]))
    for step in range(3):
        for index, order in enumerate(orders):
            if order[step] == "outcome":
                say(writer, index, "dropped", "buffer full")
            else:
                writer.charge(charge(index))
        assert writer.flush(10)
    assert InferenceCharge.objects.count() == len(orders)
    assert {(row(n).capture_outcome, row(n).capture_reason) for n in range(len(orders))} == {("dropped", "buffer full")}


def test_the_last_outcome_counts(writer: LedgerWriter) -> None:  # HA-10, CAP-10
    writer.charge(charge())
    say(writer, 0, "failed", "timeout")
    say(writer, 0, "recorded")
    assert writer.flush(10)
    assert (row().capture_outcome, row().capture_reason) == ("recorded", "")


def test_a_row_written_again_takes_the_newer_facts(writer: LedgerWriter) -> None:  # HA-10
    writer.charge(charge(amount=200))
    assert writer.flush(10)
    writer.charge(charge(amount=300))
    assert writer.flush(10)
    assert row().amount == 300


POISON: dict[str, tuple[str, Any, Any]] = {
    "a cost beyond the column": ("cost", Decimal("1e12"), None),
    "a cost that rounds beyond the column": ("cost", Decimal("9999999999.99999999999"), None),
    "no reason at all": ("fallback_reason", None, ""),
    "a word that is too long": ("change", "c" * 21, None),
    "a word that is none": ("change", 7, None),
    "a note that is too long": ("note", "n" * 21, None),
    "a cost that is no number": ("cost", Decimal("NaN"), None),
    "a cost as a float": ("cost", 0.1, Decimal("0.1")),
    "more tokens than a bigint": ("input_tokens", 2**63, None),
    "a count that is text": ("output_tokens", "many", None),
    "NUL in a name": ("model", "hou\0se", ""),
    "a lone surrogate in a name": ("routing", "\ud83d", ""),
    "a name that is too long": ("agent_version_id", "v" * 201, None),
    "NUL in prose": ("fallback_reason", "a\0b", "a\\x00b"),
    "a lone surrogate in prose": ("capture_reason", "\ud83d!", "\\ud83d!"),
    "prose that is too long": ("fallback_reason", "x" * 300, "x" * 199 + "…"),
    "an outcome nobody knows": ("capture_outcome", "perhaps", "pending"),
    "an outcome of a fallback for a turn that is none": ("capture_outcome", "none", "pending"),
}


def test_poisoned_rows_are_reduced_and_their_neighbours_stay(writer: LedgerWriter) -> None:  # HA-10
    for index, (field, value, _) in enumerate(POISON.values()):
        writer.charge(charge(2 * index, **{field: value}))
        writer.charge(charge(2 * index + 1))
    assert writer.flush(10)
    for index, (what, (field, _, kept)) in enumerate(POISON.items()):
        assert getattr(row(2 * index), field) == kept, what
        assert (row(2 * index).action, row(2 * index).hand_number) == ("raise", 7), what
        assert row(2 * index + 1).cost == Decimal("0.0031"), what
    assert (writer.stats.written, writer.stats.lost) == (2 * len(POISON), 0)


KEYLESS: list[dict[str, Any]] = [
    {"agent_id": "a\0"},
    {"agent_id": "\ud83d"},
    {"table_id": "t" * 201},
    {"hand_number": 2**63},
    {"action_index": None},
    {"played_at": "noon"},
]


def test_rows_without_a_key_or_a_time_are_counted_as_lost(writer: LedgerWriter) -> None:  # HA-10
    for changes in KEYLESS:
        writer.charge(charge(0, **changes))
    writer.charge("no charge at all")  # type: ignore[arg-type]
    writer.charge(charge(1))
    assert writer.flush(10)
    assert InferenceCharge.objects.get().action_index == 1
    assert writer.stats.lost == len(KEYLESS) + 1


def test_what_only_the_database_refuses_leaves_the_row_with_its_key(
    writer: LedgerWriter, monkeypatch: pytest.MonkeyPatch
) -> None:  # HA-10
    monkeypatch.setitem(TEXT_LIMITS, "model", 10**6)
    unfit = "x" * 300 if connection.vendor == "postgresql" else "x"
    if connection.vendor == "sqlite":  # SQLite has no length of its own: a trigger stands in for it
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE TRIGGER refuse BEFORE INSERT ON agent_inference_charges WHEN NEW.model = 'x' "
                "BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
    try:
        writer.charge(charge(0))
        writer.charge(charge(1, model=unfit))
        say(writer, 1, "recorded")
        writer.charge(charge(2))
        assert writer.flush(10)
    finally:
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("DROP TRIGGER refuse")
    assert [row(index).model for index in (0, 1, 2)] == ["house-1", "", "house-1"]
    assert row(1).capture_outcome == "recorded"
    assert (writer.stats.written, writer.stats.reduced, writer.stats.lost) == (3, 1, 0)


def test_the_limits_are_those_of_the_table() -> None:  # HA-10
    limits = {f.name: f.max_length for f in InferenceCharge._meta.concrete_fields if getattr(f, "max_length", None)}
    assert limits == {**TEXT_LIMITS, "capture_outcome": 10}
    assert {f.name for f in InferenceCharge._meta.concrete_fields} - {"id"} | {"heard"} == set(charge().__dict__)


def test_costs_keep_ten_places() -> None:  # HA-10
    fitted, refused = fit(charge(cost=Decimal("0.00000000014999")))
    assert (fitted.cost, refused) == (Decimal("1E-10"), [])


def test_rows_wait_while_the_database_is_away_and_are_written_when_it_is_back(
    writer: LedgerWriter,
) -> None:  # HA-10, SF-5
    with table_away():
        for index in range(150):
            writer.charge(charge(index))
            say(writer, index, "recorded")
        assert not writer.flush(0.5)
    assert writer.flush(20)
    assert InferenceCharge.objects.filter(capture_outcome="recorded").count() == 150
    assert writer.stats.lost == 0


def test_what_a_closed_writer_left_is_written_by_the_next(tmp_path: Path) -> None:  # HA-10, SF-5
    first = LedgerWriter(tmp_path / "spool")
    with table_away():
        first.charge(charge(0))
        say(first, 0, "recorded")
        assert not first.close(0.5)
    second = LedgerWriter(tmp_path / "spool")
    assert second.close(10)
    assert row().capture_outcome == "recorded"


def test_an_outcome_waits_for_its_row_across_writers(tmp_path: Path) -> None:  # HA-10
    first = LedgerWriter(tmp_path / "spool")
    say(first, 0, "failed", "no space")
    assert first.close(10)
    second = LedgerWriter(tmp_path / "spool")
    second.charge(charge(0))
    assert second.close(10)
    assert (row().capture_outcome, row().capture_reason) == ("failed", "no space")


def test_two_writers_may_share_a_spool(tmp_path: Path) -> None:  # HA-10
    writers = [LedgerWriter(tmp_path / "spool") for _ in range(2)]
    for index in range(100):
        writers[index % 2].charge(charge(index))
        say(writers[(index + 1) % 2], index, "recorded")
    for writer in writers:
        assert writer.close(20)
    assert InferenceCharge.objects.filter(capture_outcome="recorded").count() == 100


def test_many_threads_may_charge_at_once(writer: LedgerWriter) -> None:  # HA-10
    def play(agent: int) -> None:
        for index in range(50):
            writer.charge(charge(index, agent_id=f"a{agent}"))

    threads = [threading.Thread(target=play, args=(agent,)) for agent in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.flush(20)
    assert InferenceCharge.objects.count() == writer.stats.written == 200


def test_the_spool_is_bounded_and_what_found_no_room_is_counted(tmp_path: Path) -> None:  # HA-10
    writer = LedgerWriter(tmp_path / "spool", max_spool_bytes=64 * 1024, max_queued=50)
    with table_away():
        for index in range(1000):
            writer.charge(charge(index))
        writer.close(0.5)
    assert (tmp_path / "spool").stat().st_size <= 64 * 1024
    lost = writer.stats.lost
    assert lost > 0
    assert LedgerWriter(tmp_path / "spool").close(20)
    assert InferenceCharge.objects.count() == 1000 - lost


def test_a_spool_takes_no_entry_beyond_its_bound(tmp_path: Path) -> None:  # HA-10
    spool = Spool(tmp_path / "spool", max_bytes=64 * 1024)
    with pytest.raises(sqlite3.OperationalError, match="full"):
        for start in range(0, 5000, 100):
            spool.append(charge(index) for index in range(start, start + 100))
    kept = len(spool.next(5000).charges)
    spool.close()
    assert kept > 0
    assert kept % 100 == 0  # all of an append or none
    assert (tmp_path / "spool").stat().st_size <= 64 * 1024


def test_a_batch_that_cannot_be_taken_off_a_full_disk_is_counted_once(  # HA-10, SF-5
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = iter([sqlite3.OperationalError("database or disk is full")] * 3)
    done = Spool.done

    def full_at_first(self: Spool, *args: Any, **named: Any) -> None:
        if error := next(fails, None):
            raise error
        done(self, *args, **named)

    monkeypatch.setattr(Spool, "done", full_at_first)
    writer = LedgerWriter(tmp_path / "spool")
    writer.charge(charge())
    assert writer.close(20)
    assert writer.stats.written == InferenceCharge.objects.count() == 1


def test_a_damaged_spool_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:  # HA-10, SF-5
    (tmp_path / "spool").write_bytes(b"not a database" * 1000)
    writer = LedgerWriter(tmp_path / "spool")
    writer.charge(charge())
    assert writer.close(10)
    assert row().action == "raise"
    assert len(list(tmp_path.glob("spool.damaged-*"))) == 1
    assert "damaged" in caplog.text


def test_a_spool_that_cannot_be_made_is_said_in_one_line(tmp_path: Path) -> None:  # SF-4
    (tmp_path / "file").touch()
    with pytest.raises(SpoolError, match="cannot be used") as error:
        LedgerWriter(tmp_path / "file" / "spool")
    assert "\n" not in str(error.value)


def test_an_entry_that_cannot_be_read_is_counted_and_holds_nothing_up(tmp_path: Path) -> None:  # SF-5
    import sqlite3

    LedgerWriter(tmp_path / "spool").close(5)
    with contextlib.closing(sqlite3.connect(tmp_path / "spool")) as spool, spool:
        spool.execute("INSERT INTO entries (key, kind, body, at) VALUES (x'00', 'Charge', x'93', 0)")
    writer = LedgerWriter(tmp_path / "spool")
    writer.charge(charge())
    assert writer.close(10)
    assert row().action == "raise"
    assert (writer.stats.written, writer.stats.lost) == (1, 1)


def test_outcomes_whose_row_never_came_are_let_go_after_a_day(tmp_path: Path) -> None:  # HA-10
    import sqlite3

    first = LedgerWriter(tmp_path / "spool")
    say(first, 0, "recorded")
    assert first.close(5)
    with contextlib.closing(sqlite3.connect(tmp_path / "spool")) as spool, spool:
        spool.execute("UPDATE entries SET at = at - 90000")
    second = LedgerWriter(tmp_path / "spool")
    second.charge(charge(1))
    assert second.close(5)
    assert second.stats.lost_outcomes == 1


def test_a_forked_child_writes_nothing_of_its_parents(tmp_path: Path) -> None:  # CAP-10
    writer = LedgerWriter(tmp_path / "spool")
    child = os.fork()
    if child == 0:
        writer.charge(charge(1))
        os._exit(int(writer.flush(1)) + 2 * int(writer.close(1)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.charge(charge(0))
    assert writer.close(10)
    assert [one.action_index for one in InferenceCharge.objects.all()] == [0]


def test_the_spool_is_readable_by_its_owner_alone(writer: LedgerWriter, tmp_path: Path) -> None:  # SF-6
    assert (tmp_path / "ledger.spool").stat().st_mode & 0o777 == 0o600


def test_a_charge_after_close_is_counted_and_harms_nobody(writer: LedgerWriter) -> None:  # HA-10
    assert writer.close(5)
    writer.charge(charge())
    say(writer, 0, "recorded")
    assert (writer.stats.lost, writer.stats.lost_outcomes) == (1, 1)


def test_no_reason_is_logged_with_what_was_in_the_row(
    writer: LedgerWriter, caplog: pytest.LogCaptureFixture
) -> None:  # CAP-10
    writer.charge(charge(0, model="secret\0prompt", agent_id="secret\0agent"))
    writer.charge(charge(1, model="secret\0prompt"))
    assert writer.flush(10)
    assert "ledger" in caplog.text
    assert "secret" not in caplog.text


def test_an_agent_needs_no_django_to_charge() -> None:  # HA-10
    code = "import sys; sys.modules['django'] = None; from agentlab.agents.ledger import Charge, LedgerWriter"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
