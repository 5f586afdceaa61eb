"""Reading a file that somebody hands us: bounded, strict about keys that repeat, one line where it cannot be read.

Of YAML the core schema of version 1.2 is read, which is JSON's: `no` is a word, `01234` a postal code, `12:30` a time
of day and 2001-02-03 a birthday, all of them text, where YAML 1.1 has False, 668, 750 and a date.
"""

import json
import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

from agentlab.persona.values import Invalid, clean

FILE_LIMIT = 64 * 1024**2  # bytes
VALUE_LIMIT = 10_000_000  # values of a file once its aliases are laid out


def contents(path: Path) -> str:
    """Reads no more than the limit, as a pipe or a device has no size."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}") from None
    except ValueError:  # a NUL in it
        raise Invalid(f"{str(path)!r}: not a path") from None
    if len(data) > FILE_LIMIT:
        raise Invalid(f"{path}: larger than {FILE_LIMIT // 1024**2} MiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid(f"{path}: not UTF-8") from None


def parsed(path: Path) -> Any:
    """The value that a .json, .yaml or .yml file holds."""
    text = contents(path)
    try:
        if path.suffix == ".json":
            return _json(text)
        whole = yaml.load(text, Loader=_Strict)  # noqa: S506 (a SafeLoader)
        _laid_out(whole, {})
        return _cleaned(whole) if _HALF.search(text) else whole
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Invalid(f"{path}{line}: {error.problem}") from None
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise Invalid(f"{path}: {str(error).splitlines()[0]}") from None


def entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, mapping) for each line of a .jsonl file, or for each item of a list in a .json or .yaml file."""
    if path.suffix == ".jsonl":
        items = [(f"{path.name}:{n}", _line(path, n, line)) for n, line in _lines(path)]
    else:
        whole = parsed(path)
        listed = whole if isinstance(whole, list) else [whole]
        items = [(f"{path.name}[{n}]", item) for n, item in enumerate(listed)]
    for place, item in items:
        if not isinstance(item, dict):
            raise Invalid(f"{path.parent / place}: expected a mapping, got {type(item).__name__}")
        yield place, item


def _lines(path: Path) -> list[tuple[int, str]]:
    return [(n, line) for n, line in enumerate(contents(path).split("\n"), 1) if line.strip()]


def _line(path: Path, number: int, line: str) -> Any:
    try:
        return _json(line)
    except json.JSONDecodeError as error:
        raise Invalid(f"{path}:{number}: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{path}:{number}: {error}") from None


def _json(text: str) -> Any:
    whole = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    return _cleaned(whole) if _HALF.search(text) else whole


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


_HALF = re.compile(r"\\u[dD]")  # may be half of a pair of surrogates, and half a pair is no character


def _cleaned(value: Any) -> Any:
    """The value with halves of pairs spelled out: a text that was cut in the middle of a character has them."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return {clean(key): _cleaned(item) for key, item in value.items()} if isinstance(value, dict) else value


def _laid_out(value: Any, known: dict[int, int]) -> int:
    """How many values this is with every alias laid out: nine lines of aliases can stand for a billion."""
    if not isinstance(value, list | dict):
        return 1
    if id(value) in known:
        if not known[id(value)]:
            raise ValueError("it contains itself")
        return known[id(value)]
    known[id(value)] = 0
    items = value.values() if isinstance(value, dict) else value
    known[id(value)] = total = 1 + sum(_laid_out(item, known) for item in items)
    if total > VALUE_LIMIT:
        raise ValueError(f"more than {VALUE_LIMIT} values")
    return total


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are given once: of two values for one key, none is the right one."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for key in made if sum(key == other for other, _ in pairs) > 1)
        raise ValueError(f"the key {twice!r} is given twice")
    return made


class _Strict(yaml.SafeLoader):
    """YAML without dates (a birthday is text), and with keys that are text and given once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} must be text (quote it)", problem_mark=key_node.start_mark
                )
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {key!r} is given twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


_CORE = [
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)", "tTfF"),
    ("null", r"(?:~|null|Null|NULL|)", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
]
_Strict.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in _CORE:
    _Strict.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"^{_pattern}\Z"), list(_first))
