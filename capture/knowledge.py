"""The first door: what the agent knew is whatever the function that renders its turn was called with.

Nothing here names an argument, so one that is added later is recorded with no change to capture.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from capture.frozen import freeze, thaw

P = ParamSpec("P")
R = TypeVar("R")


class Built(NamedTuple, Generic[R]):
    """What the function returned, and its bound arguments as MessagePack (None where they could not be frozen)."""

    value: R
    knowledge: bytes | None


def captures_knowledge(function: Callable[P, R]) -> Callable[P, Built[R]]:
    """Freeze the bound arguments, defaults applied, then call the function. It may change them; the record stays."""
    bind = _binder(inspect.signature(function))

    @functools.wraps(function)
    def captured(*args: P.args, **kwargs: P.kwargs) -> Built[R]:
        try:
            knowledge = freeze(bind(args, kwargs))
        except Exception:
            # Not captured is a visible gap; a turn that capture broke is not acceptable. A wrong call still raises
            # its own TypeError, from the function itself.
            knowledge = None
        return Built(function(*args, **kwargs), knowledge)

    return captured


_Bind = Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]


def _binder(signature: inspect.Signature) -> _Bind:
    """What `signature.bind` and `apply_defaults` give, at a tenth of their cost where all parameters are plain ones."""
    parameters = list(signature.parameters.values())
    positional = tuple(one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD)
    named = {one.name: one.default for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}

    def bind_plain(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        bound = named | dict(zip(positional, args, strict=False)) | kwargs
        if len(bound) != len(named) or len(args) > len(positional) or _MISSING in map(id, bound.values()):
            raise TypeError("the call does not fit the function")
        return bound

    def bind_any(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    return bind_plain if len(named) == len(parameters) else bind_any


_MISSING = id(inspect.Parameter.empty)


def read_knowledge(knowledge: bytes) -> dict[str, Any]:
    """The arguments by name, as plain Python values. Raises ValueError where the bytes are damaged."""
    arguments = thaw(knowledge)
    if not isinstance(arguments, dict):
        raise ValueError("not the arguments of a function")
    return arguments
