"""Refuses every way past `send_to_table`. Runs with lint: `python -m agentlab.hosted.outbound_check [FILE…]`.

A message that left by another way would be in no trace: the trace would look complete and be wrong. So the agent's
connection lives in one private attribute of one class, is opened in one place, is sent on in one method, and nothing
else on the agent's side may speak of sending, by alias or by name in a string either. The table's own modules, the
other end of the wire, are free to send; they may not open a connection to a table.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
ROOMS = ("agentlab", "capture", "factory")
HOSTED = PROJECT / "agentlab" / "hosted"
DOOR_FILE = HOSTED / "agent.py"
TABLE_SIDE = {HOSTED / f"{name}.py" for name in ("table", "table_process", "connections", "door", "floor", "seats")}

CLASS, DOOR, CONNECTION = "HostedAgent", "send_to_table", "__socket"
MANGLED = f"_{CLASS}{CONNECTION}"
CLIENTS = {"websockets.asyncio.client", "websockets.client", "websockets.sync", "websockets.legacy", "websocket"}
BARE = {"websockets", "websockets.connect", "websockets.asyncio"}
# Ways to send on a websockets connection, or to come by the parts under it that can.
SENDING = {"send", "send_text", "send_bytes", "send_json", "sendall", "sendto", "transport", "protocol", "send_context"}
BY_NAME = {"attrgetter", "methodcaller", "__getattribute__", "__dict__", "vars", "eval", "exec"}


@dataclass(frozen=True, order=True)
class Violation:
    """Where, and what is wrong there."""

    line: int
    why: str


def violations(source: str, *, agent_side: bool = True, door_file: bool = False) -> list[Violation]:
    """What `source` does that it may not. Raises SyntaxError where it is no Python."""
    tree = ast.parse(source)
    found = set(_anywhere(tree, door_file=door_file))
    if agent_side:
        allowed = _door(tree) if door_file else set()
        found |= {hit for node in ast.walk(tree) if node not in allowed for hit in _sending(node)}
        found |= set(_connection(tree, allowed))
    return sorted(found)


def _anywhere(tree: ast.Module, *, door_file: bool) -> Iterator[Violation]:
    """What no module of the project may do."""
    for node in ast.walk(tree):
        if (name := _imported_client(node)) and not (door_file and _is_doors_import(node)):
            yield Violation(node.lineno, f"opens connections of its own: {name}")  # type: ignore[attr-defined]
        if isinstance(node, ast.Attribute | ast.Name) and _name(node) == MANGLED:
            yield Violation(node.lineno, f"reaches into {CLASS} for its connection")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and MANGLED in node.value:
            yield Violation(node.lineno, f"names the connection of {CLASS}")
        if isinstance(node, ast.ClassDef) and CLASS in {_name(base) for base in node.bases}:
            yield Violation(node.lineno, f"a subclass of {CLASS} could send by itself")


def _imported_client(node: ast.AST) -> str:
    """The client library that the import gives access to; its bare name does, too."""
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        return ""
    for name in names:
        if name in BARE or any(f"{name}.".startswith(f"{client}.") for client in CLIENTS):
            return name
    return ""


def _is_doors_import(node: ast.AST) -> bool:
    """What the door's own file imports of the client, under no other name."""
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "websockets.asyncio.client"
        and all(alias.name in {"connect", "ClientConnection"} and alias.asname is None for alias in node.names)
    )


def _door(tree: ast.Module) -> set[ast.AST]:
    """The one place that may send: `self.__socket.send` inside the door."""
    allowed: set[ast.AST] = set()
    for outer in ast.walk(tree):
        if isinstance(outer, ast.ClassDef) and outer.name == CLASS:
            for method in outer.body:
                if isinstance(method, ast.AsyncFunctionDef) and method.name == DOOR:
                    allowed |= {node for node in ast.walk(method) if _is_own(node, "send")}
    return allowed


def _is_own(node: ast.AST, attribute: str) -> bool:
    """`self.__socket.<attribute>`."""
    return isinstance(node, ast.Attribute) and node.attr == attribute and _is_connection(node.value)


def _is_connection(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == CONNECTION
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _sending(node: ast.AST) -> Iterator[Violation]:
    """A way to send by its name, or a name that is made up at run time."""
    if isinstance(node, ast.Attribute) and node.attr in SENDING:
        yield Violation(node.lineno, f".{node.attr} outside {DOOR}")
    if isinstance(node, ast.Attribute | ast.Name) and _name(node) in BY_NAME:
        yield Violation(node.lineno, f"{_name(node)} can reach what is not named")
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            if alias.name in BY_NAME | SENDING:
                yield Violation(node.lineno, f"{alias.name} can reach what is not named")
    if isinstance(node, ast.Name) and node.id == "getattr":
        yield Violation(node.lineno, "getattr can reach what is not named")
    if isinstance(node, ast.MatchClass):
        for keyword in node.kwd_attrs:
            if keyword in SENDING:
                yield Violation(node.lineno, f"a pattern takes .{keyword}")


def _connection(tree: ast.Module, allowed: set[ast.AST]) -> Iterator[Violation]:
    """The connection is opened by `async with connect(…) as self.__socket`, read, compared with None and closed.
    Anything else would be a second name for it."""
    fine: set[ast.AST] = {node.value for node in allowed if isinstance(node, ast.Attribute)}
    fine |= {part for node in ast.walk(tree) for part in _harmless(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "connect" and node not in fine:
            yield Violation(node.lineno, f"a connection that {CLASS} does not keep to itself")
        is_read = isinstance(node, ast.Attribute) and node.attr == CONNECTION and isinstance(node.ctx, ast.Load)
        if is_read and not (_is_connection(node) and node in fine):
            yield Violation(node.lineno, "a second name for the connection")  # type: ignore[attr-defined]


def _harmless(node: ast.AST) -> Iterator[ast.AST]:
    """Where the connection, or `connect`, stands without becoming a second name."""
    match node:
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            yield left
        case ast.AsyncFor(iter=stream):
            yield stream
        case ast.Attribute(value=owner, attr="close" | "close_code"):
            yield owner
        case ast.withitem(context_expr=ast.Call(func=ast.Name(id="connect") as name), optional_vars=kept):
            if kept is not None and _is_connection(kept):
                yield name
        case _:
            pass


def _name(node: ast.AST) -> str:
    """The last part of a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def check(path: Path) -> list[Violation]:
    """One file of the project, by the rules of the side that it is on."""
    side = path.is_relative_to(HOSTED) and path not in TABLE_SIDE
    return violations(path.read_text(encoding="utf-8"), agent_side=side, door_file=path == DOOR_FILE)


def main(arguments: list[str]) -> int:
    """0 where all is well; else 1, with a line for each violation."""
    paths = [Path(argument).resolve() for argument in arguments]
    paths = paths or [path for room in ROOMS for path in sorted((PROJECT / room).rglob("*.py"))]
    bad = 0
    for path in paths:
        for violation in check(path) if path != Path(__file__).resolve() else ():
            bad += 1
            print(f"{path}:{violation.line}: {violation.why}")  # noqa: T201 - a command's answer
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
