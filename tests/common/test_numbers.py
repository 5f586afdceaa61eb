"""Numbers, money, durations and times: every digit that was there, and none that was not."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from agentlab.common.numbers import ago, amount, clock, counted, date_and_time, duration, money, size

NOON = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (200, "200"),
        (1353, "1,353"),
        (2**63, "9,223,372,036,854,775,808"),
        (Decimal("1.10"), "1.10"),
        (Decimal("1E+3"), "1,000"),
        (Decimal("NaN"), "NaN"),
        (Decimal("1E+999999"), "1E+999999"),
        (Decimal("1E-999999"), "1E-999999"),
        (0.999, "0.999"),
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (True, "True"),
        ("7", "7"),
    ],
)
def test_an_amount_keeps_all_its_digits(value: object, words: str) -> None:  # VW-3
    assert amount(value) == words


def test_an_integer_longer_than_python_writes_in_base_ten_is_in_base_sixteen() -> None:  # CAP-9
    assert amount(2**20_000) == hex(2**20_000)
    assert money(10**5000).startswith("$1")


def test_two_different_amounts_never_look_equal() -> None:  # VW-3
    assert amount(0.99999) != amount(1)
    assert amount(Decimal("1.0")) != amount(Decimal("1.00"))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Decimal("0.0031000000"), "$0.0031"),
        (Decimal("1.2"), "$1.20"),
        (Decimal("0"), "$0"),
        (Decimal("1234.5"), "$1,234.50"),
        (Decimal("0.0000000001"), "$0.0000000001"),
        (Decimal("-0.5"), "−$0.50"),
        (0.0028, "$0.0028"),
        (Decimal("3"), "$3.00"),
        (None, "cost unknown"),
    ],
)
def test_money_to_the_last_digit_that_says_something(value: Decimal | None, words: str) -> None:
    assert money(value) == words


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 ms"),
        (85, "85 ms"),
        (1900, "1.9 s"),
        (59_949, "59.9 s"),
        (125_000, "2 min 5 s"),
        (12_000_000, "3 h 20 min"),
    ],
)
def test_durations(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words


def test_an_unknown_duration_is_not_zero() -> None:
    assert duration(None) == "duration unknown"


def test_times_are_in_utc_and_say_so() -> None:
    moment = datetime(2026, 11, 29, 15, 2, 11, tzinfo=timezone(timedelta(hours=1)))
    assert date_and_time(moment) == "29 Nov 2026 14:02:11 UTC"
    assert clock(moment) == "14:02:11"


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(seconds=40), "40 s ago"),
        (timedelta(minutes=4), "4 min ago"),
        (timedelta(hours=26), "26 h ago"),
        (timedelta(days=3), "3 days ago"),
    ],
)
def test_how_long_ago(age: timedelta, words: str) -> None:
    assert ago(NOON - age, NOON) == words


def test_a_moment_to_come_is_given_in_full() -> None:
    assert ago(NOON + timedelta(hours=1), NOON) == "29 Nov 2026 13:00:00 UTC"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (7512, "7.5 KB"),
        (999_949, "999.9 KB"),
        (999_950, "1.0 MB"),
        (1_100_000, "1.1 MB"),
        (3_000_000_000, "3.0 GB"),
        (None, "size unknown"),
    ],
)
def test_sizes_are_said_in_words(count: int | None, words: str) -> None:
    assert size(count) == words


@pytest.mark.parametrize(("count", "words"), [(0, "0 turns"), (1, "1 turn"), (2, "2 turns"), (1353, "1,353 turns")])
def test_a_count_agrees_with_its_noun(count: int, words: str) -> None:
    assert counted(count, "turn") == words
