"""Reads what a model chose out of what it said, and says what became of it on the way to the table. Pure.

A choice is explicit or it is none: a JSON object (whole, fenced, amid prose, or cut off once its action can be
read), call markup, a labelled line, or an answer of one verb. The last one counts. What stands in thoughts or in tool
output that the model made up does not, and sentences are never searched for verbs.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from agentlab.common.numbers import amount as digits

Number = int | float | Decimal
Source = Literal["content", "reasoning", "tool_call"]


@dataclass(frozen=True, slots=True)
class Choice:
    """`action`: fold, check, call, bet, raise or all_in, as it was asked for; `amount` of a bet, raise or all-in,
    None where there is none that can be read without guessing; `source`: the channel it was read from."""

    action: str
    amount: Number | None
    source: Source


def parse_choice(
    text: str | None, reasoning: str | None = None, tool_call: Mapping[str, Any] | None = None
) -> Choice | None:
    """The model's own explicit choice, or None where there is none that can be read.

    `tool_call` is {"name": str, "args": dict} and comes first; the reasoning channel is read only where the content
    is empty. Never raises for what a model returned.
    """
    if tool_call and (found := _from_call(tool_call)):
        return Choice(*found, "tool_call")
    if text and text.strip():
        found = _from_text(_ANYONE_ELSE.sub(" ", _without_thoughts(text)))
        return Choice(*found, "content") if found else None
    if reasoning and reasoning.strip():
        found = _from_text(_ANYONE_ELSE.sub(" ", _THOUGHT_TAG.sub(" ", reasoning)))
        return Choice(*found, "reasoning") if found else None
    return None


_Found = tuple[str, Number | None]

# ---- what is not the model's answer

_THOUGHTS: Final = "think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis"
# What may repeat is bounded or possessive throughout, so that no text makes a pattern slow.
_THOUGHT_TAG = re.compile(rf"</?(?:{_THOUGHTS})\b[^<>]{{0,80}}>", re.IGNORECASE)
_THOUGHT = re.compile(rf"<({_THOUGHTS})\b[^<>]{{0,80}}>.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_THOUGHT_END = re.compile(rf"</(?:{_THOUGHTS})\s*>", re.IGNORECASE)
# Results of tools, and other people's lines, that a model wrote itself: tags, special tokens, labels, fences.
_ANYONE_ELSE = re.compile(
    r"<(?P<tag>results?|(?:function|tool)_(?:results?|responses?|outputs?)|observations?)\b[^<>]{0,80}>"
    r".*?(?:</(?P=tag)\s*>|\Z)"
    r"|<[|｜][^<>]{0,20}(?:output|result|response)s?[^<>]{0,3}begin[^<>]{0,20}[|｜]>"
    r".*?(?:<[|｜][^<>]{0,30}end[^<>]{0,20}[|｜]>|\Z)"
    r"|```(?:tool_outputs?|tool_results?|observation)\b.*?(?:```|\Z)"
    r"|^[ \t]*(?:observation|tool[ _](?:result|output|response))s?[ \t]*:.*?(?:\n[ \t]*\n|\Z)"
    r"|^(?:human|user)[ \t]*:.*\Z",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)


def _without_thoughts(text: str) -> str:
    text = _THOUGHT.sub(" ", text)
    return _THOUGHT_END.split(text)[-1]  # an end without a beginning: all before it was thought


# ---- one text

_INVOKE = re.compile(r'<invoke name="([^"<>]{1,40})"\s*>(.*?)(?:</invoke>|\Z)', re.IGNORECASE | re.DOTALL)
_PARAMETER = re.compile(r'<parameter name="([^"<>]{1,40})"[^<>]{0,80}>([^<]*)', re.IGNORECASE)
_ACTION_TAG = re.compile(
    r"<(action|decision|move)>([^<]{1,60})</\1>(?:\s*<(\w{1,20})>([^<]{1,40})</\3>)?", re.IGNORECASE
)
_LABELLED = re.compile(
    r"^[^\w\n]{0,20}(?:(?:my|the|final|thus|so|therefore|hence) ){0,3}(?:decision|action|move|choice|answer|play)"
    r"\W{0,3}[:=]\W{0,10}(.{1,40})$(?:\n[^\w\n]{0,20}(\w{1,20})\W{0,3}[:=]\W{0,10}(.{1,40})$)?",
    re.IGNORECASE | re.MULTILINE,
)


LONGEST: Final = 128 * 1024  # characters, from the end; more is a runaway, and reading it would hold a table up


def _from_text(text: str) -> _Found | None:
    text = text[-LONGEST:]
    found = [*_from_objects(text), *_from_markup(text)]
    if found:
        return max(found, key=lambda one: one[0])[1]
    labelled = [
        _from_pairs({"action": said, _plain_name(name): value}) for said, name, value in _LABELLED.findall(text)
    ]
    explicit = [one for one in labelled if one]
    return explicit[-1] if explicit else _from_words(text)


def _from_markup(text: str) -> Iterator[tuple[int, _Found]]:
    """A call that leaked into the text, or tags about an action."""
    for match in _INVOKE.finditer(text):
        if found := _from_call({"name": match[1], "args": dict(_PARAMETER.findall(match[2]))}):
            yield match.start(), found
    for match in _ACTION_TAG.finditer(text):
        if found := _from_pairs({"action": match[2], _plain_name(match[3]): match[4]}):
            yield match.start(), found


_MOST_FAILURES: Final = 2_000  # braces that open nothing: enough for any answer, and a bound for a hostile one
_read_json = json.JSONDecoder(strict=False).raw_decode


def _from_objects(text: str) -> Iterator[tuple[int, _Found]]:
    """Every outermost JSON object that is a choice, with where it begins. Lists of several are stories, not choices."""
    position = failures = 0
    while (opening := _OPENING.search(text, position)) and failures < _MOST_FAILURES:
        start = opening.start()
        try:
            value, position = _read_json(text, start)
        except RecursionError:
            return
        except ValueError:
            failures += 1
            position = start + 1
            if text[start] == "{" and (found := _from_broken(text, start)):
                yield start, found
            continue
        if isinstance(value, list):
            value = value[0] if len(value) == 1 else None
        if isinstance(value, dict) and (found := _from_object(value)):
            yield start, found


_OPENING = re.compile(r"[{\[]")
_PAIR = re.compile(
    r"""(?<![\\\w])(["']?)(?P<name>[A-Za-z_]{1,20})\1\s*:\s*"""
    r"""(?:(?P<quote>["'])(?P<text>[^"'\\\n{}]{1,60})(?P=quote)|(?P<number>-?\d[\d_]*(?:\.\d+)?)(?=\s*[,}\n]))"""
)


def _from_broken(text: str, start: int) -> _Found | None:
    """An object that is cut off or not quite JSON: its action and amount where each stands whole."""
    end = text.find("{", start + 1)
    pairs: dict[str, Any] = {}
    for match in _PAIR.finditer(text, start, end if end != -1 else len(text)):
        pairs.setdefault(match["name"], match["text"] or match["number"])
    return _from_object(pairs)


# ---- one object

_ACTION_KEYS: Final = ("action", "decision", "move", "choice", "act", "play", "type")
_INNER_KEYS: Final = ("decision", "choice", "final_decision", "final_action", "final", "answer", "move", "action")
_AMOUNT_KEYS: Final = (
    *("raise_to", "amount", "bet_amount", "raise_amount", "bet_size", "raise_size", "size", "total", "value"),
    *("chips", "bet", "raise", "to"),
)
# A tale of somebody else's move, or a frame off the wire that tells one.
_WHOSE: Final = frozenset({"opponent", "opponent_name", "player", "player_name", "agent_id"})
_TALES: Final = frozenset({"player_action", "hand_result", "game_state", "your_turn", "rejected"})


def _plain_name(name: object) -> str:
    """raiseTo, raise-to and RAISE_TO are one name."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[-\s]+", "_", str(name)).lower()


def _from_object(value: Mapping[str, Any], depth: int = 0) -> _Found | None:
    pairs = {_plain_name(name): item for name, item in value.items()}
    if _WHOSE & pairs.keys() or pairs.get("type") in _TALES:
        return None
    if found := _from_pairs(pairs):
        return found
    inner = next((pairs[name] for name in _INNER_KEYS if isinstance(pairs.get(name), dict)), None)
    if inner is not None and depth < 3:
        return _from_object(inner, depth + 1)
    if isinstance(pairs.get("name"), str):
        args = next((pairs[name] for name in ("arguments", "args", "parameters", "input") if name in pairs), None)
        return _from_call({"name": pairs["name"], "args": args})
    return None


def _from_call(call: Mapping[str, Any]) -> _Found | None:
    args = call.get("args")
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            args = None
    pairs = {_plain_name(name): item for name, item in args.items()} if isinstance(args, Mapping) else {}
    name = str(call.get("name") or "").rpartition(".")[2]
    return _from_pairs({**pairs, "action": name}) or _from_pairs(pairs)


def _from_pairs(pairs: Mapping[str, Any]) -> _Found | None:
    said = next((pairs[name] for name in _ACTION_KEYS if isinstance(pairs.get(name), str)), None)
    found = _from_words(said) if said is not None else None
    if found is None:
        return None
    verb, amount = found
    given = [pairs[name] for name in _AMOUNT_KEYS if pairs.get(name) is not None]
    if verb in _SIZED and given:
        amount = _amount(given[0])
        if isinstance(given[0], str) and _plain_words(given[0]) in _ALL_IN:
            return "all_in", None
    return verb, amount


# ---- words and numbers

_ALL_IN: Final = frozenset(
    {"all in", "allin", "shove", "jam", "push", "go all in", "move all in", "raise all in", "bet all in"}
)
_RAISES: Final = ("raise", "raise to", "raiseto", "re raise", "reraise", "3bet", "3 bet", "4bet", "4 bet")
_VERBS: Final = {
    **{verb: verb for verb in ("fold", "check", "call", "bet")},
    "muck": "fold",
    **dict.fromkeys(_RAISES, "raise"),
    **dict.fromkeys(_ALL_IN, "all_in"),
}
_SIZED: Final = frozenset({"bet", "raise", "all_in"})  # ways to put in more: one may be sent as another
_UNSIZED: Final = frozenset({"fold", "check", "call"})
_WORDS = re.compile(rf"(?:i )?({'|'.join(sorted(_VERBS, key=len, reverse=True))})(?: (?:to )?(\S.*))?")
_NUMBER = re.compile(r"(?:to )?\$?(-?(?:\d{1,3}(?:[, _]\d{3})+|\d{1,15})(?:\.\d{1,2}|\.\d{4,9})?)(?: ?chips?)?")


def _plain_words(text: str) -> str:
    return re.sub(r"[\s\-_‐-–]+", " ", text.strip("*_`\"'.!()[] \t\r\n").lower())


def _from_words(text: str) -> _Found | None:
    """A verb, perhaps with its amount, and nothing else: no sentence is searched for one."""
    if len(text) > 80:
        return None
    match = _WORDS.fullmatch(_plain_words(text))
    if not match:
        return None
    verb, rest = _VERBS[match[1]], match[2]
    if rest is None:
        return verb, None
    if rest in _ALL_IN and verb in _SIZED:
        return "all_in", None
    if not _NUMBER.fullmatch(rest):
        return None
    return verb, _amount(rest) if verb in _SIZED else None


def _amount(value: object) -> Number | None:
    """A number, or text that is one and nothing else: `1,000` is 1000; `2.5bb`, `half pot`, `1.000` are unreadable."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip().lower())
        if not match:
            return None
        digits = re.sub(r"[, _]", "", match[1])
        value = float(digits) if "." in digits else int(digits)
    if isinstance(value, float):
        return None if not math.isfinite(value) else int(value) if value.is_integer() else value
    return value if isinstance(value, int) else None


# ---- what became of it


@dataclass(frozen=True, slots=True)
class Remark:
    """`changed`: another amount reached the table than was asked for; `note`: a difference that is no harm."""

    kind: Literal["changed", "note"]
    text: str


@dataclass(frozen=True, slots=True)
class Move:
    """A verb and its amount; None for what is not known."""

    action: str | None = None
    amount: object = None


def reached_table(decision: list[Any] | None) -> Move | None:
    """The action among the messages of a turn's decision; None where none is known to have been accepted."""
    if not decision or was_refused(decision):
        return None
    for message in reversed(decision):
        fields = _fields(message)
        if fields.get("type", "action") == "action" and isinstance(fields.get("action"), str):
            return Move(fields["action"], fields.get("amount"))
    return None


def remark(
    asked: Move, sent: Move | None, change: str | None, limits: tuple[object, object] | None = None
) -> Remark | None:
    """What to say of the way from the response to the table, None where the two agree or either is unreadable.

    `change` is the record's own word (rename, all_in, verb, clamp); `limits` the least and most that were legal. A
    wrong "your action was changed" costs its reader a hunt for a fault that is not there, so this only says what
    both sides are known to say.
    """
    if sent is None or not sent.action or not asked.action:
        return None
    verbs = {_verb(asked.action), _verb(sent.action)}
    if not (verbs <= _SIZED or len(verbs) == 1) or verbs & _UNSIZED:  # only amounts of one act can be compared
        return _verb_remark(asked, sent)
    if change is None and asked.action == "all_in" != sent.action:  # perhaps all that was left, in other words
        return None
    wanted, reached = _number(asked.amount), _number(sent.amount)
    differ = wanted is not None and reached is not None and wanted != reached
    if change == "all_in" and differ:
        return Remark(
            "note", f"{digits(asked.amount)} is the whole stack that was left: sent as all-in, {digits(sent.amount)}."
        )
    if change == "rename":
        return _verb_remark(asked, sent)
    if not differ:
        return None
    legal = f" (limit {digits(limits[0])}–{digits(limits[1])})" if limits else ""
    return Remark(
        "changed",
        f"Changed on the way out: the response asked for {digits(asked.amount)};"
        f" {digits(sent.amount)} reached the table{legal}.",
    )


def _verb(action: str) -> str:
    """The game's own word, or the agent's where it plays another game."""
    return _VERBS.get(_plain_words(action), action)


def _verb_remark(asked: Move, sent: Move) -> Remark | None:
    if asked.action == sent.action:
        return None
    return Remark("note", f"The response said {_spoken(asked)}; {_spoken(sent)} was sent.")


def _spoken(move: Move) -> str:
    verb = str(move.action).replace("_", "-")
    return verb if move.amount is None or verb in ("fold", "check", "call") else f"{verb} {digits(move.amount)}"


def _number(value: object) -> Decimal | None:
    """Exact, so that 0.999 is not 1; text that is a number counts, NaN and infinity do not."""
    value = _amount(value) if isinstance(value, str) else value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    exact = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    return exact if exact.is_finite() else None


def was_refused(decision: list[Any] | None) -> bool:
    """Whether the last word on a turn's messages is the table's refusal."""
    last = decision[-1] if decision else None
    return isinstance(last, dict) and last.keys() == {"refused"}


def _fields(message: object) -> dict[Any, Any]:
    if isinstance(message, str):
        try:
            message = json.loads(message)
        except (ValueError, RecursionError):
            return {}
    return message if isinstance(message, dict) else {}
