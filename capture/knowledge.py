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
    signature = inspect.signature(function)

    @functools.wraps(function)
    def captured(*args: P.args, **kwargs: P.kwargs) -> Built[R]:
        knowledge = _frozen_arguments(signature, args, kwargs)
        return Built(function(*args, **kwargs), knowledge)

    return captured


def _frozen_arguments(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes | None:
    try:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return freeze(bound.arguments)
    except Exception:
        # Not captured is a visible gap; a turn that capture broke is not acceptable. A wrong call still raises
        # its own TypeError from the function itself.
        return None


def read_knowledge(knowledge: bytes) -> dict[str, Any]:
    """The arguments by name, as plain Python values. Raises ValueError where the bytes are damaged."""
    arguments = thaw(knowledge)
    if not isinstance(arguments, dict):
        raise ValueError("not the arguments of a function")
    return arguments
