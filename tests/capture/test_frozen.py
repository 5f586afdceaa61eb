"""Freezing and thawing: what went in comes out, and later changes do not."""

import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import json
import math
import socket
import uuid
import zoneinfo
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.frozen import MAX_DEPTH, Marker, freeze, json_form, thaw


def again(value: Any) -> Any:
    return thaw(freeze(value))


def same(left: Any, right: Any) -> bool:
    """Equal in type too, NaN equal to itself and -0.0 unlike 0.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return repr(left) == repr(right)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        pairs = zip(left.items(), right.items(), strict=False)
        return len(left) == len(right) and all(same(a, c) and same(b, d) for (a, b), (c, d) in pairs)
    return bool(left == right)


surrogates = st.text(st.characters(exclude_categories=())) | st.text()
atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=True)
    | surrogates
    | st.binary()
    | st.decimals(allow_nan=False)
    | st.datetimes(timezones=st.none() | st.just(datetime.UTC))
    | st.dates()
    | st.timedeltas()
    | st.uuids()
)
keys = (
    st.none()
    | st.integers()
    | surrogates
    | st.binary()
    | st.tuples(st.integers(), surrogates)
    | st.decimals(allow_nan=False)
)
values = st.recursive(atoms, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=30)


@given(values)
def test_every_plain_value_comes_back_as_it_went_in(value: Any) -> None:  # CAP-9
    assert same(again(value), value)


@given(values)
def test_every_value_has_a_json_form_that_ascii_json_can_say(value: Any) -> None:  # CAP-9
    text = json.dumps(json_form(again(value)), ensure_ascii=True, allow_nan=False)
    assert text.isascii()


@pytest.mark.parametrize(
    "value",
    [
        {"ev": math.nan, "none": None, "zero": 0},
        [-math.inf, math.inf],
        {"a": -0.0, "b": 0.0},
        [2**63, -(2**63), 2**64, -(2**63) - 1, 10**5000],
        {1: "a", "1": "b", None: "c", (1, 2): "d"},
        {"0": "x", "2": "y"},
        {"pot": decimal.Decimal("1.10"), "text": "1.10"},
        [0, False, None, "", [], {}],
        ["\ud83e", {"\udc00": "\x00"}, "ход 🂡 \u202e\r\n"],
        '{"act":"fold"}',
        {"picture": "data:image/png;base64,iVBORw0KGgo=", "nested": '"{\\"act\\":\\"fold\\"}"'},
        [b"\x00\xff", "bytes"],
        datetime.datetime(2026, 11, 1, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    ],
)
def test_what_other_recorders_flatten_is_kept(value: Any) -> None:  # CAP-9
    assert same(again(value), value)


def test_two_nan_keys_and_a_none_are_three_values() -> None:  # CAP-9
    assert list(again({math.nan: 1, float("nan"): 2, None: 3}).values()) == [1, 2, 3]


def test_a_change_after_freezing_is_not_in_what_was_frozen() -> None:  # CAP-4
    inner = ["a"]
    value = {"seen": inner, "deep": [{"seen": inner}]}
    frozen = freeze(value)
    inner.append("b")
    value["new"] = 1
    assert thaw(frozen) == {"seen": ["a"], "deep": [{"seen": ["a"]}]}


def test_a_shared_object_is_there_in_full_each_time() -> None:  # CAP-9
    shared = {"s": [1]}
    assert again([shared, shared, {"again": shared}]) == [{"s": [1]}, {"s": [1]}, {"again": {"s": [1]}}]


def test_a_cycle_is_cut_where_it_closes_and_its_siblings_are_kept() -> None:  # CAP-9
    cycle: dict[str, Any] = {"before": 1}
    cycle["self"] = [cycle]
    cycle["after"] = 2
    assert again(cycle) == {"before": 1, "self": [Marker("cycle", "dict")], "after": 2}


def test_five_thousand_levels_are_cut_at_a_depth_that_every_reader_can_take() -> None:  # CAP-9
    deep: list[Any] = []
    level = deep
    for _ in range(5000):
        level.append([])
        level = level[0]
    found = again({"deep": deep, "beside": 1})
    assert found["beside"] == 1
    levels = 0
    while isinstance(found, list | dict):
        found = found["deep"] if isinstance(found, dict) else found[0]
        levels += 1
    assert (levels, found) == (MAX_DEPTH, Marker("too_deep", "list"))


def test_what_was_frozen_at_a_shallow_stack_is_read_from_a_deeper_one() -> None:  # CAP-9
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    frozen = freeze(deep)

    def at_depth(frames: int) -> Any:
        return at_depth(frames - 1) if frames else thaw(frozen)

    assert isinstance(at_depth(300), list)
    assert json.dumps(json_form(thaw(frozen))).count("[") == MAX_DEPTH


class Secretive:
    """A host object whose every method would tell if it were called."""

    def __init__(self) -> None:
        object.__setattr__(self, "called", [])

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")

    def _called(self, *args: Any) -> Any:
        raise AssertionError("a method of a host object was called")

    __repr__ = __str__ = __iter__ = __len__ = __eq__ = __hash__ = __bool__ = __reduce__ = _called  # type: ignore
    to_dict = model_dump = __json__ = __getstate__ = _called


def test_an_object_that_cannot_be_encoded_is_named_by_its_type_and_asked_nothing() -> None:  # CAP-9
    with socket.socket() as open_socket:
        found = again({"before": 1, "it": Secretive(), "many": [Secretive(), open_socket], "after": "2"})
    mine = Marker("unencodable", f"{__name__}.Secretive")
    assert found == {"before": 1, "it": mine, "many": [mine, Marker("unencodable", "socket.socket")], "after": "2"}


class Telling(type):
    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError(f"the metaclass was asked for {name}")


def test_not_even_a_metaclass_is_asked_for_the_name() -> None:  # CAP-9
    odd = Telling("Odd", (), {})
    assert again([object.__new__(odd)]) == [Marker("unencodable", f"{__name__}.Odd")]


@dataclasses.dataclass(frozen=True, slots=True)
class Seat:
    name: str
    chips: decimal.Decimal

    @property
    def secret(self) -> str:
        raise AssertionError("a property was read")


@dataclasses.dataclass
class Frame:
    seats: list[Seat]
    unset: int = dataclasses.field(init=False)


class Action(msgspec.Struct, tag="player_action", rename="camel"):
    hand_number: int
    note: str = "\ud83e"


class Colour(enum.Enum):
    RED = "red"
    MIXED = ("a", 1)


class Level(enum.IntEnum):
    HIGH = 3


class Point(collections.namedtuple("Point", "x y")):
    __slots__ = ()


class Named(str):
    def __str__(self) -> str:
        raise AssertionError("__str__ was called")


class Money(float):
    def __repr__(self) -> str:
        raise AssertionError("__repr__ was called")


def test_structs_dataclasses_enums_and_subclasses_are_kept_as_what_they_hold() -> None:  # CAP-9
    value = {
        "struct": Action(4),
        "enum": [Colour.RED, Colour.MIXED, Level.HIGH],
        "shapes": [(1, 2), {3}, frozenset({4}), collections.deque([5, 6]), Point(7, 8)],
        "subclasses": [Named("n"), Money(1.5), collections.OrderedDict(a=1), collections.Counter("aab")],
        "bytes": [bytearray(b"x"), memoryview(b"y")],
        "seat": Seat("Rocky", decimal.Decimal("1.10")),
    }
    assert again(value) == {
        "struct": {"type": "player_action", "handNumber": 4, "note": "\ud83e"},
        "enum": ["red", ["a", 1], 3],
        "shapes": [[1, 2], [3], [4], [5, 6], [7, 8]],
        "subclasses": ["n", 1.5, {"a": 1}, {"a": 2, "b": 1}],
        "bytes": [b"x", b"y"],
        "seat": {"name": "Rocky", "chips": decimal.Decimal("1.10")},
    }


def test_a_dataclass_with_a_field_unset_keeps_its_siblings() -> None:  # CAP-9
    found = again([Frame([Seat("a", decimal.Decimal(1))]), 7])
    assert found == [{"seats": [{"name": "a", "chips": decimal.Decimal(1)}]}, 7]


class Zone(datetime.tzinfo):
    def utcoffset(self, when: datetime.datetime | None) -> datetime.timedelta:
        raise AssertionError("a method of a host object was called")


def test_times_keep_their_offset_and_a_zone_of_the_hosts_own_is_not_asked() -> None:  # CAP-9
    berlin = datetime.datetime(2026, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    found = again([berlin, datetime.time(1, 2), datetime.datetime(2026, 1, 1, tzinfo=Zone())])
    assert found[0].isoformat() == berlin.isoformat()
    assert found[1:] == [datetime.time(1, 2), Marker("unencodable", "datetime.datetime")]


def test_keys_that_would_fall_together_or_cannot_be_keys_lose_no_value() -> None:  # CAP-9
    found = again(
        {Colour.RED: 1, "red": 2, Seat("a", decimal.Decimal(1)): 3, uuid.UUID(int=1): 4, decimal.Decimal(1): 5}
    )
    assert sorted(found.values()) == [1, 2, 3, 4, 5]
    assert found[uuid.UUID(int=1)] == 4
    assert {1, 2} == {found["red"], *(v for k, v in found.items() if isinstance(k, Marker) and v < 3)}


@given(st.dictionaries(st.text() | st.just("$float") | st.just("$map"), st.text(), max_size=3))
def test_data_that_looks_like_a_marker_of_the_json_form_cannot_be_taken_for_one(value: dict[str, str]) -> None:  # CAP-9
    form = json_form(again(value))
    if any(key.startswith("$") for key in value):
        assert form == {"$map": [[key, item] for key, item in value.items()]}
    else:
        assert form == value


def test_text_that_looks_like_a_marker_stays_text() -> None:  # CAP-9
    looks = [
        repr(Marker("cycle", "dict")),
        "[redacted]",
        {"$unencodable": "x"},
        "unencodable\x00socket",
        b"int\x00\x01",
    ]
    assert again(looks) == looks


def test_the_json_form_says_what_json_cannot() -> None:  # CAP-9
    value = {
        "nan": math.nan,
        "infinite": [math.inf, -math.inf],
        "digits": decimal.Decimal("1.10"),
        "bytes": b"\x00",
        "keys": {1: "a", "1": "b"},
        "huge": 10**5000,
        "big": 2**63,
        "wait": datetime.timedelta(seconds=1.5),
        "day": datetime.date(2026, 1, 2),
        "who": uuid.UUID(int=1),
        "odd": object(),
        "half": "\ud83e",
    }
    form = json_form(again(value))
    assert form == {
        "nan": {"$float": "NaN"},
        "infinite": [{"$float": "Infinity"}, {"$float": "-Infinity"}],
        "digits": {"$decimal": "1.10"},
        "bytes": {"$bytes": "AA=="},
        "keys": {"$map": [[1, "a"], ["1", "b"]]},
        "huge": {"$int": hex(10**5000)},
        "big": 2**63,
        "wait": {"$seconds": "1.5"},
        "day": {"$date": "2026-01-02"},
        "who": {"$uuid": str(uuid.UUID(int=1))},
        "odd": {"$unencodable": "object"},
        "half": "\ud83e",
    }
    assert '"\\ud83e"' in json.dumps(form)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_frozen_value_are_refused_and_nothing_else(data: bytes) -> None:  # CAP-9
    with contextlib.suppress(ValueError):
        thaw(data)


@given(values, st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_frozen_value_is_read_or_refused(value: Any, place: int, byte: int) -> None:  # CAP-9
    damaged = bytearray(freeze(value))
    damaged[place % len(damaged)] = byte
    with contextlib.suppress(ValueError):
        thaw(bytes(damaged))
