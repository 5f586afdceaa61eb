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
LIBRARY = "websockets"
# What may be had of the library: by the other end of the wire, by everybody. Its bare name opens connections, too.
SERVER, ERRORS = "websockets.asyncio.server", "websockets.exceptions"
# Other ways to reach a table over a network; the agent's side has no use for any of them.
NETWORKS = {"websocket", "socket", "ssl", "http", "httpx", "httpx2", "aiohttp", "requests", "urllib.request", "wsproto"}
STREAMS = {"open_connection", "open_unix_connection", "create_connection", "create_unix_connection", "sock_connect"}
# Ways to send on a websockets connection, or to come by the parts under it that can.
SENDING = {
    "send",
    "send_text",
    "send_bytes",
    "send_json",
    "ping",
    "pong",
    "sendall",
    "sendto",
    "transport",
    "protocol",
    "send_context",
}
BY_NAME = {
    *("attrgetter", "methodcaller", "getattr", "getattr_static", "setattr", "delattr", "__getattribute__", "__dict__"),
    *("__setattr__", "__self__", "__builtins__", "vars", "globals", "locals", "f_locals", "eval", "exec"),
    *("import_module", "__import__", "get_objects", "get_referents"),
}
WHOLE_MODULES = {"builtins", "importlib", "inspect", "gc", "ctypes"}


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
        for name in _imports(node):
            if _opens_connections(name) and not (door_file and _is_doors_import(node)):
                yield Violation(_line(node), f"opens connections of its own: {name}")
            if name.endswith(("hosted.agent", "hosted.agent.*")) or _is_doors_own(name):
                yield Violation(_line(node), f"takes more of {CLASS}'s file than its public names: {name}")
        if _name(node) == MANGLED:
            yield Violation(_line(node), f"reaches into {CLASS} for its connection")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and MANGLED in node.value:
            yield Violation(node.lineno, f"names the connection of {CLASS}")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _opens_connections(node.value):
            yield Violation(node.lineno, f"names a library that opens connections: {node.value}")
        if isinstance(node, ast.ClassDef) and {CLASS, "ClientConnection"} & {_name(base) for base in node.bases}:
            yield Violation(node.lineno, f"a subclass of {CLASS} or of its connection could send by itself")
    yield from _class_elsewhere(tree)


def _class_elsewhere(tree: ast.Module) -> Iterator[Violation]:
    """The class is called and named as a type; anything else could make another class, or change this one."""
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    types = {annotation for node in ast.walk(tree) if (annotation := _annotation(node)) is not None}
    fine = called | {part for annotation in types for part in ast.walk(annotation)}
    bases = {base for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases}
    for node in ast.walk(tree):
        if _name(node) == CLASS and node not in fine | bases:
            yield Violation(_line(node), f"{CLASS} handed on as a value")
        if isinstance(node, ast.Attribute) and node.attr == DOOR and not isinstance(node.ctx, ast.Load):
            yield Violation(node.lineno, f"puts another {DOOR} in its place")
        if isinstance(node, ast.ImportFrom) and any(one.name == CLASS and one.asname for one in node.names):
            yield Violation(node.lineno, f"a second name for {CLASS}")


def _annotation(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.returns
    return node.annotation if isinstance(node, ast.arg | ast.AnnAssign) else None


def _imports(node: ast.AST) -> list[str]:
    """The dotted names that an import statement binds."""
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module or ''}.{alias.name}" for alias in node.names]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def _within(name: str, module: str) -> bool:
    return f"{name}.".startswith(f"{module}.")


def _opens_connections(name: str) -> bool:
    """Of the library, all but names out of its errors and of its server."""
    allowed = name.startswith((f"{SERVER}.", f"{ERRORS}."))
    return _within(name, "websocket") or (_within(name, LIBRARY) and not allowed)


def _is_doors_own(name: str) -> bool:
    """What the door's file imports for itself, taken from there."""
    return name.rpartition("hosted.agent.")[1] != "" and name.rpartition(".")[2] in {"connect", "ClientConnection"}


def _is_doors_import(node: ast.AST) -> bool:
    """What the door's own file imports of the client, under no other name."""
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "websockets.asyncio.client"
        and all(alias.name in {"connect", "ClientConnection"} and alias.asname is None for alias in node.names)
    )


def _door(tree: ast.Module) -> set[ast.AST]:
    """The one place that may send: the door's first `await self.__socket.send(…)`, in no function inside it."""
    for outer in tree.body:
        if isinstance(outer, ast.ClassDef) and outer.name == CLASS:
            for method in outer.body:
                if isinstance(method, ast.AsyncFunctionDef) and method.name == DOOR:
                    return {next(iter(sorted(_sends_of(method), key=_line)))} if [*_sends_of(method)] else set()
    return set()


def _sends_of(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.Await) and isinstance(child.value, ast.Call) and _is_own(child.value.func, "send"):
            yield child.value.func
        yield from _sends_of(child)


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
    if isinstance(node, ast.Attribute) and node.attr in SENDING | STREAMS:
        yield Violation(node.lineno, f".{node.attr} outside {DOOR}")
    if _name(node) in BY_NAME or (isinstance(node, ast.Attribute) and _dotted(node) == "sys.modules"):
        yield Violation(_line(node), f"{_name(node)} can reach what is not named")
    for name in _imports(node):
        last = name.rpartition(".")[2]
        if last in BY_NAME | SENDING | STREAMS or name == "sys.modules" or any(_within(name, m) for m in WHOLE_MODULES):
            yield Violation(_line(node), f"{name} can reach what is not named")
        if any(_within(name, network) for network in NETWORKS) or name.startswith(f"{SERVER}."):
            yield Violation(_line(node), f"a way to a network: {name}")
    if isinstance(node, ast.MatchClass):
        for keyword in node.kwd_attrs:
            if keyword in SENDING | STREAMS | BY_NAME | {MANGLED, CONNECTION}:
                yield Violation(node.lineno, f"a pattern takes .{keyword}")


def _connection(tree: ast.Module, allowed: set[ast.AST]) -> Iterator[Violation]:
    """The connection is opened by `async with connect(…) as self.__socket`, read, compared with None and closed.
    Anything else would be a second name for it."""
    fine: set[ast.AST] = {node.value for node in allowed if isinstance(node, ast.Attribute)}
    fine |= {part for node in ast.walk(tree) for part in _harmless(node)}
    yield from _other_connections(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "connect" and node not in fine:
            yield Violation(node.lineno, f"a connection that {CLASS} does not keep to itself")
        is_read = isinstance(node, ast.Attribute) and node.attr == CONNECTION and isinstance(node.ctx, ast.Load)
        if is_read and not (_is_connection(node) and node in fine):
            yield Violation(node.lineno, "a second name for the connection")  # type: ignore[attr-defined]


def _other_connections(tree: ast.Module) -> Iterator[Violation]:
    """A connection that came from elsewhere, or of a class of somebody's own."""
    for node in ast.walk(tree):
        targets: list[ast.AST] = node.targets if isinstance(node, ast.Assign) else []  # type: ignore[assignment]
        if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For | ast.AsyncFor | ast.NamedExpr | ast.comprehension):
            targets = [node.target]
        value = getattr(node, "value", None)
        is_none = isinstance(value, ast.Constant) and value.value is None
        if any(_name(part) == CONNECTION for target in targets for part in ast.walk(target)) and not is_none:
            yield Violation(_line(node), "a connection from elsewhere")
        if isinstance(node, ast.keyword) and node.arg == "create_connection":
            yield Violation(node.lineno, "a connection of another class")


def _harmless(node: ast.AST) -> Iterator[ast.AST]:
    """Where the connection, or `connect`, stands without becoming a second name."""
    match node:
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            yield left
        case ast.AsyncFor(iter=stream):
            yield stream
        case ast.Call(
            func=ast.Attribute(value=owner, attr="close"), args=[], keywords=[]
        ):  # a reason would be a message
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


def _dotted(node: ast.AST) -> str:
    """`a.b` of an attribute of a name."""
    return f"{_name(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


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
