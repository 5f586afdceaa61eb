"""The first door: what the agent knew is what the function that renders its turn was called with."""

import math
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from capture.frozen import Marker
from capture.knowledge import captures_knowledge, read_knowledge


@captures_knowledge
def build(state: dict[str, Any], action_log: Any = (), *, notes: Any = None) -> Any:
    return ("prompt of", state["hand"])


def test_the_knowledge_is_the_bound_arguments_with_defaults() -> None:  # CAP-3
    positional = build({"hand": 4}, [{"action": "raise"}])
    named = build(state={"hand": 4}, notes=["tight"])
    assert read_knowledge(positional.knowledge or b"") == {
        "state": {"hand": 4},
        "action_log": [{"action": "raise"}],
        "notes": None,
    }
    assert list(read_knowledge(named.knowledge or b"").items()) == [
        ("state", {"hand": 4}),
        ("action_log", []),
        ("notes", ["tight"]),
    ]


def test_a_new_argument_is_recorded_with_no_change_to_capture() -> None:  # CAP-3 E-AFT-3
    @captures_knowledge
    def build_turn_context(state: str, opponent_reads: dict[str, float] | None = None) -> str:
        return state

    built = build_turn_context("s", opponent_reads={"Nit": 0.9})
    assert read_knowledge(built.knowledge or b"") == {"state": "s", "opponent_reads": {"Nit": 0.9}}


def test_arguments_of_every_kind_are_bound() -> None:  # CAP-3
    @captures_knowledge
    def every(first: int, /, second: int = 2, *rest: int, third: int = 3, **others: int) -> None: ...

    built = every(1, 20, 30, 40, third=5, first=6)
    assert read_knowledge(built.knowledge or b"") == {
        "first": 1,
        "second": 20,
        "rest": [30, 40],
        "third": 5,
        "others": {"first": 6},
    }


def test_the_value_is_the_very_object_that_the_function_returned() -> None:  # CAP-1
    returned = ("x", 2)

    @captures_knowledge
    def build_turn_context() -> tuple[str, int]:
        return returned

    assert build_turn_context().value is returned


def test_what_the_agent_hears_later_is_not_in_what_it_knew() -> None:  # CAP-4
    log: list[Any] = [{"action": "raise", "by": "Nit"}]
    built = build({"hand": 4}, log)
    log.append({"action": "call", "by": "me"})
    log[0]["action"] = "fold"
    assert read_knowledge(built.knowledge or b"")["action_log"] == [{"action": "raise", "by": "Nit"}]


def test_what_the_function_does_to_its_arguments_is_not_in_what_it_was_given() -> None:  # CAP-4
    @captures_knowledge
    def spoils(log: list[int]) -> None:
        log.clear()

    assert read_knowledge(spoils([1, 2]).knowledge or b"") == {"log": [1, 2]}


def test_odd_values_and_odd_keys_come_back_as_themselves() -> None:  # CAP-9
    odd = {
        1: "a",
        "1": "b",
        None: "c",
        (1, 2): "d",
        "ev": -math.inf,
        "pot": Decimal("1.10"),
        "big": 2**63,
        "s": "\ud83e",
    }
    assert read_knowledge(build(odd | {"hand": 1}).knowledge or b"")["state"] == odd | {"hand": 1}


def test_two_hundred_keys_are_all_there() -> None:  # CAP-9
    state = {"hand": 1} | {f"key{number}": number for number in range(200)}
    assert read_knowledge(build(state).knowledge or b"")["state"] == state


def test_an_argument_that_cannot_be_encoded_leaves_its_name_and_type() -> None:  # CAP-9
    found = read_knowledge(build({"hand": 1, "it": object()}).knowledge or b"")
    assert found["state"] == {"hand": 1, "it": Marker("unencodable", "object")}


def test_knowledge_is_messagepack_that_others_can_read() -> None:  # CAP-9
    assert msgspec.msgpack.decode(build({"hand": 1}).knowledge or b"")["state"] == {"hand": 1}


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"state": 1}), ((1,), {"what": 1})])
def test_a_wrong_call_fails_as_it_would_without_capture(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:  # CAP-10
    with pytest.raises(TypeError, match=r"build\(\)"):
        build(*args, **kwargs)


def test_the_functions_own_error_is_its_own() -> None:  # CAP-10
    with pytest.raises(KeyError):
        build({})


def test_a_stack_with_no_room_costs_the_knowledge_and_not_the_turn() -> None:  # CAP-10
    @captures_knowledge
    def answers(state: Any) -> int:
        return 7

    class Odd:
        """Needs the careful walk, for which there is no stack left."""

    def at_the_limit() -> Any:
        try:
            return at_the_limit()
        except RecursionError:
            return answers({"deep": [[[[Odd()]]]]})

    built = at_the_limit()
    assert built.value == 7


def test_the_function_keeps_its_name_and_its_documentation() -> None:
    assert (build.__name__, build.__wrapped__.__name__) == ("build", "build")  # type: ignore[attr-defined]


@pytest.mark.parametrize("damaged", [b"", b"\xc1", b"\x01", b"\x81\xa1a"])
def test_damaged_knowledge_is_refused_by_name(damaged: bytes) -> None:  # CAP-9
    with pytest.raises(ValueError, match="not"):
        read_knowledge(damaged)
