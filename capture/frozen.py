"""Freezing: any Python value into MessagePack bytes, once, and back.

Exact builtins are packed in C, with dates, Decimals and the like tagged on the way. What is left (enums, dataclasses,
structs, subclasses, lone surrogates, cycles, objects that nobody can encode) takes a careful walk that calls no method
of a host object. What MessagePack has no word for is an extension type, so that nothing in the data can be mistaken for
a tag. Tuples and sets are read back as lists, dataclasses and structs as dicts, enums as their values.
"""

import collections
import dataclasses
import datetime
import decimal
import enum
import math
import struct
import types
import uuid
import zoneinfo
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgpack
import msgspec

MAX_DEPTH: Final = 200  # deeper than any memory, and shallow enough for every reader's stack
_TAGGED: Final = 1  # extension code: "kind\0payload"
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1  # what MessagePack has room for
_LONGEST_INT: Final = 10_000  # bits; Python refuses to print integers past 4300 digits


@dataclasses.dataclass(frozen=True, slots=True)
class Marker:
    """Stands where a value could not be kept: `kind` is unencodable, cycle or too_deep; `type` is the value's type."""

    kind: str
    type: str


def freeze(value: object) -> bytes:
    """The value as MessagePack, cut loose from whatever happens to it later. Never raises for what a value is."""
    try:
        return _pack(value)
    except (ValueError, TypeError, OverflowError, RecursionError):  # UnicodeEncodeError is a ValueError
        return _pack(_Walk().plain(value, 0))


def _pack(value: object) -> bytes:
    """In C for what is exactly a builtin; `_odd_one` is asked for everything else. A packer serves one call, as two
    threads may not share one."""
    packed: bytes = msgpack.Packer(default=_odd_one, strict_types=True, buf_size=32_768).pack(value)
    return packed


def thaw(frozen: bytes) -> Any:
    """The plain Python value in `frozen`. Raises ValueError where the bytes are not what `freeze` makes."""
    try:
        return _decoder.decode(frozen)
    except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"not a frozen value ({type(error).__name__})") from None


def json_form(value: Any) -> Any:
    """What `thaw` gave, as values that JSON can say. What it cannot say becomes a dict with one key that begins
    with `$` ($float, $int, $bytes, $decimal, $datetime, $date, $time, $seconds, $uuid, $map, $unencodable, $cycle,
    $too_deep). A dict with a key that is no text, or that begins with `$` itself, is a `$map` of pairs, so data
    is never mistaken for one of these.
    """
    return _json_form(value, 0)


# ---- reading


_READERS: dict[str, Callable[[str], Any]] = {
    "decimal": decimal.Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "uuid": uuid.UUID,
}


def _read_tagged(code: int, data: memoryview) -> Any:
    kind, _, payload = bytes(data).partition(b"\0")
    name = kind.decode("ascii", "replace")
    if code != _TAGGED:
        raise ValueError(f"unknown extension {code}")
    if name == "int":
        return int.from_bytes(payload, "big", signed=True)
    text = payload.decode("utf-8", "surrogatepass")
    if name == "text":
        return text
    if name == "timedelta":
        days, seconds, microseconds = map(int, text.split())
        return datetime.timedelta(days, seconds, microseconds)
    if name in _READERS:
        return _READERS[name](text)
    return Marker(name, text)


_decoder = msgspec.msgpack.Decoder(ext_hook=_read_tagged)


# ---- what is no builtin


def _tagged(kind: str, payload: str | bytes) -> msgpack.ExtType:
    data = payload if isinstance(payload, bytes) else payload.encode("utf-8", "surrogatepass")
    return msgpack.ExtType(_TAGGED, kind.encode() + b"\0" + data)


def type_name(value: object) -> str:
    """Module and name of the value's type, asked of the type's own slots: a metaclass is host code too."""
    cls = type(value)
    name: str = type.__dict__["__qualname__"].__get__(cls)
    module = type.__dict__["__module__"].__get__(cls)
    return name if module == "builtins" or not isinstance(module, str) else f"{module}.{name}"


def _marker(kind: str, value: object) -> msgpack.ExtType:
    return _tagged(kind, type_name(value))


def _text(value: str) -> object:
    try:
        value.encode()
    except UnicodeEncodeError:
        return _tagged("text", value)
    return value


def _int(value: int) -> object:
    if _LEAST_INT <= value <= _MOST_INT:
        return value
    return _tagged("int", value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _zone_is_ours(zone: datetime.tzinfo | None) -> bool:
    return zone is None or type(zone) in (datetime.timezone, zoneinfo.ZoneInfo)


def _datetime(value: datetime.datetime) -> object:
    if not _zone_is_ours(value.tzinfo):
        return _marker("unencodable", value)
    return _tagged("datetime", value.isoformat())


def _time(value: datetime.time) -> object:
    return _tagged("time", value.isoformat()) if _zone_is_ours(value.tzinfo) else _marker("unencodable", value)


def _decimal(value: decimal.Decimal) -> object:
    return _tagged("decimal", decimal.Decimal.__str__(value))


# By their very type: subclasses carry methods of their own. No two of these pack alike, so they are safe as keys.
_EXACT: dict[type, Callable[[Any], object]] = {
    int: _int,
    tuple: list,
    decimal.Decimal: _decimal,
    datetime.datetime: _datetime,
    datetime.date: lambda value: _tagged("date", value.isoformat()),
    datetime.time: _time,
    datetime.timedelta: lambda value: _tagged("timedelta", f"{value.days} {value.seconds} {value.microseconds}"),
    uuid.UUID: lambda value: _tagged("uuid", str(value)),
    set: list,
    collections.deque: list,
}


def _odd_one(value: object) -> object:
    """What the packer writes for a value that is no exact builtin. Raises TypeError for one that needs the walk."""
    plain = _EXACT.get(type(value))
    if plain is None:
        raise TypeError("no exact builtin")
    return plain(value)


# ---- the careful walk

# For these and their subclasses, by the type's own method, so that no override is called.
_ATOMS: dict[type, Callable[[Any], object]] = {
    str: lambda value: _text(str.__str__(value)),
    int: lambda value: _int(int.__pos__(value)),
    float: float.__pos__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    bytearray: lambda value: bytes(bytearray.copy(value)),
    memoryview: lambda value: value.tobytes(),
    decimal.Decimal: _decimal,
}
_SEQUENCES: dict[type, Callable[[Any], list[Any]]] = {
    list: list.copy,
    tuple: lambda value: list(tuple.__iter__(value)),
    set: lambda value: list(set.__iter__(value)),
    frozenset: lambda value: list(frozenset.__iter__(value)),
    collections.deque: lambda value: list(collections.deque.__iter__(value)),
}


def _bases(value: object) -> tuple[type, ...]:
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(type(value))
    return bases


def _kind_of(value: object, table: dict[type, Callable[[Any], Any]]) -> Callable[[Any], Any] | None:
    return next((table[base] for base in _bases(value) if base in table), None)


_UNSET: Final = object()


def _stored(value: object, name: str) -> object:
    """A field as it lies in the instance: properties and `__getattr__` are host code and are not asked."""
    for base in _bases(value):
        slot = base.__dict__.get(name)
        if isinstance(slot, types.MemberDescriptorType):
            try:
                return slot.__get__(value, type(value))
            except AttributeError:
                return _UNSET
    return object.__getattribute__(value, "__dict__").get(name, _UNSET)


def _fields(value: object) -> list[tuple[Any, Any]] | None:
    """(name on the wire, value) for the fields of a struct or a dataclass that are set; None for any other object."""
    cls: Any = type(value)
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, msgspec.Struct):
        tag = value.__struct_config__
        pairs += [(tag.tag_field, tag.tag)] if tag.tag_field is not None else []
        names: Iterable[tuple[str, str]] = zip(cls.__struct_encode_fields__, cls.__struct_fields__, strict=True)
    elif any("__dataclass_fields__" in base.__dict__ for base in _bases(value)):
        names = ((name, name) for name in cls.__dataclass_fields__)
    else:
        return None
    pairs += [(wire, _stored(value, name)) for wire, name in names]
    return [pair for pair in pairs if pair[1] is not _UNSET]


_AS_THEY_ARE: Final = frozenset({float, bool, type(None), bytes})


class _Walk:
    """One value, turned into what msgspec encodes natively plus extension types."""

    def __init__(self) -> None:
        self._path: set[int] = set()

    def plain(self, value: Any, depth: int) -> object:
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind is str:
            return value if value.isascii() else _text(value)
        if kind is int:
            return _int(value)
        try:
            return self._other(value, depth)
        except Exception:
            # Whatever is odd about this one value (a broken slot, a tzinfo that raises), its siblings are kept.
            return _marker("unencodable", value)

    def _other(self, value: Any, depth: int) -> object:
        kind = type(value)
        if kind is not dict and kind is not list:
            if isinstance(value, enum.Enum):
                return self.plain(object.__getattribute__(value, "_value_"), depth)
            atom = None if kind in _SEQUENCES else _EXACT.get(kind) or _kind_of(value, _ATOMS)
            if atom is not None:
                return atom(value)
        if depth >= MAX_DEPTH:
            return _marker("too_deep", value)
        if id(value) in self._path:
            return _marker("cycle", value)
        self._path.add(id(value))
        try:
            return self._container(value, depth + 1)
        finally:
            self._path.discard(id(value))

    def _container(self, value: Any, depth: int) -> object:
        if isinstance(value, dict):
            return self._map(list(dict.items(value)), depth)
        sequence = _kind_of(value, _SEQUENCES)
        if sequence is not None:
            return [self.plain(item, depth) for item in sequence(value)]
        fields = _fields(value)
        return _marker("unencodable", value) if fields is None else self._map(fields, depth)

    def _map(self, pairs: list[tuple[Any, Any]], depth: int) -> dict[Any, object]:
        if all(type(name) is str and name.isascii() for name, _ in pairs):
            return {name: self.plain(value, depth) for name, value in pairs}
        return self._map_of_odd_keys(pairs, depth)

    def _map_of_odd_keys(self, pairs: list[tuple[Any, Any]], depth: int) -> dict[Any, object]:
        """Keys keep their types. One that cannot be a key when read, or would fall on another's, becomes a marker
        with its place in the map, so that no value is lost."""
        result: dict[Any, object] = {}
        taken: set[Any] = set()
        for key, value in pairs:
            plain = _as_key(self.plain(key, depth))
            try:
                (read,) = thaw(_pack({plain: None}))
                fresh = read not in taken
            except (TypeError, ValueError):  # a map can be no key
                fresh = False
            if not fresh:
                read = Marker("unencodable", f"{type_name(key)} (key {len(taken)})")
                plain = _tagged(read.kind, read.type)
            taken.add(read)
            result[plain] = self.plain(value, depth)
        return result


def _as_key(plain: Any) -> Any:
    """A list can be no key of a Python dict; the tuple packs alike."""
    return tuple(map(_as_key, plain)) if isinstance(plain, list) else plain


# ---- the JSON form

_SAFE_JSON = (str, bool, type(None))


def _json_form(value: Any, depth: int) -> Any:
    if isinstance(value, _SAFE_JSON):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _LONGEST_INT else {"$int": hex(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": _float_name(value)}
    if isinstance(value, list | tuple | dict):
        if depth >= MAX_DEPTH:
            return {"$too_deep": type_name(value)}
        return _json_container(value, depth + 1)
    return _json_marker(value)


def _float_name(value: float) -> str:
    """`Infinity`, `-Infinity`, `NaN`; a NaN that is not Python's own brings its eight bytes: `NaN:7ff8000000000001`."""
    if not math.isnan(value):
        return "Infinity" if value > 0 else "-Infinity"
    bits = struct.pack(">d", value)
    return "NaN" if bits == _PLAIN_NAN else f"NaN:{bits.hex()}"


_PLAIN_NAN = struct.pack(">d", math.nan)


def _json_container(value: Any, depth: int) -> Any:
    if not isinstance(value, dict):
        return [_json_form(item, depth) for item in value]
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: _json_form(item, depth) for key, item in value.items()}
    return {"$map": [[_json_form(key, depth), _json_form(item, depth)] for key, item in value.items()]}


def _json_marker(value: Any) -> dict[str, Any]:
    if isinstance(value, Marker):
        return {f"${value.kind}": value.type}
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode()}
    if isinstance(value, datetime.timedelta):
        return {"$seconds": str(decimal.Decimal(value // _MICROSECOND) / 1_000_000)}
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return {f"${type(value).__name__}": value.isoformat()}
    return {f"${type(value).__name__.lower()}": str(value)}  # Decimal, UUID


_MICROSECOND = datetime.timedelta(microseconds=1)
