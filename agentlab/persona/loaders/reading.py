"""Reading a file that somebody hands us: bounded, strict about keys that repeat, one line where it cannot be read."""

import json
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml

from agentlab.persona.values import Invalid

FILE_LIMIT = 64 * 1024**2  # bytes


def contents(path: Path) -> str:
    try:
        if path.stat().st_size > FILE_LIMIT:
            raise Invalid(f"{path}: larger than {FILE_LIMIT // 1024**2} MiB")
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Invalid(f"{path}: not UTF-8") from None


def parsed(path: Path) -> Any:
    """The value that a .json, .yaml or .yml file holds."""
    text = contents(path)
    try:
        if path.suffix == ".json":
            return json.loads(text, object_pairs_hook=_once)
        return yaml.load(text, Loader=_Strict)  # noqa: S506 (a SafeLoader)
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
        return json.loads(line, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{path}:{number}: {error}") from None


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


_Strict.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
