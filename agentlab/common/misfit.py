"""What msgspec says of a value that does not fit, in plain words: whoever wrote a file knows no `int | null`."""

import re

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
BOUNDS = {">=": "{} or more", "<=": "{} or less", ">": "above {}", "<": "below {}"}
LENGTHS = {">=": "at least", "<=": "at most"}

_EXPECTED = re.compile(r"Expected `([^`]*)`(?:, got `([^`]*)`)?(.*)", re.DOTALL)
_BOUND = re.compile(r" (?:(of length )(?=[<>]=))?(>=|<=|>|<) (-?[0-9.e+]+)")


def in_plain_words(message: str, shapes: dict[str, str] | None = None) -> str:
    """`message` without its place. `shapes`: what a regular expression of a pattern asks for."""
    if found := _EXPECTED.fullmatch(message):
        kinds, got, more = found.groups()
        return f"must be {_kinds(kinds)}{_more(kinds, more, shapes or {})}{f', not {_kinds(got)}' if got else ''}"
    if missing := re.fullmatch(r"Object missing required field (`.*`)", message, re.DOTALL):
        return f"{missing[1]} is missing"
    if other := re.fullmatch(r"Invalid enum value (.*)", message, re.DOTALL):
        return f"{other[1]} is none of the words that it may be"
    return message.removeprefix("Object contains ")


def _kinds(names: str) -> str:
    return " or ".join(KINDS.get(name, name) for name in names.split(" | "))


def _more(kinds: str, rest: str, shapes: dict[str, str]) -> str:
    if found := _BOUND.fullmatch(rest):
        of_length, sign, limit = found.groups()
        if of_length:
            return f" of {LENGTHS[sign]} {limit} {'characters' if kinds == 'str' else 'entries'}"
        return f", {BOUNDS[sign].format(limit.removesuffix('.0'))}"
    if rest.startswith(" matching regex "):
        return f" {shapes.get(rest.removeprefix(' matching regex '), 'of another form')}"
    return rest
