"""One turn from memory to decision: context, prompt, model, reading, clamp. No connection, no record."""

import json
import re
from dataclasses import dataclass

from agentlab.hosted.context import Script, assemble, build_turn_context
from agentlab.hosted.decide import Decision, Legal, clamp, safe_action
from agentlab.hosted.memory import Frame, Gap, Memory, gap
from agentlab.hosted.model_port import Completion, Model, ModelFailed, ask
from capture.choice import parse_choice
from capture.knowledge import Built
from capture.prompt import Prompt

LEAST_MODEL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a seat plays: the snapshot of one published version, and the model that reads it."""

    id: int
    version_id: str
    script: Script
    model: Model


@dataclass(frozen=True, slots=True)
class Thought:
    """What the agent had in hand for a turn: its frozen knowledge, the prompt made from it, and what it lacked."""

    built: Built[str]
    prompt: Prompt
    gap: Gap


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a turn came to. A fallback has a reason, and neither completion nor source of a choice."""

    decision: Decision
    completion: Completion | None = None
    choice_source: str | None = None
    note: str = ""
    fallback_reason: str = ""
    duration_ms: int | None = None

    @property
    def is_fallback(self) -> bool:
        return bool(self.fallback_reason)


def think(memory: Memory, turn: Frame, deployment: Deployment) -> Thought:
    """The first door, and the assembler. `memory.state` must be there."""
    assert memory.state is not None
    built = build_turn_context(
        state=memory.state,
        turn=turn,
        action_log=memory.action_log,
        hand_history=memory.hand_history,
        notes=memory.notes,
        whispers=memory.whispers,
    )
    lacks = gap(memory.state, memory.action_log, memory.hand_history)
    return Thought(built, assemble(deployment.script, built.value), lacks)


async def decide(thought: Thought, legal: Legal, deployment: Deployment, *, timeout: float) -> Outcome:
    """The model's decision within `timeout` seconds, clamped; the safe action where there is none."""
    if timeout < LEAST_MODEL_SECONDS:
        return fallback(legal, "no time left to ask the model")
    try:
        completion = await ask(deployment.model, thought.prompt.text, timeout=timeout)
    except ModelFailed as error:
        return fallback(legal, f"model: {error.reason}", error.duration_ms)
    choice = parse_choice(completion.text, completion.reasoning, completion.tool_call)
    if choice is None:
        said = completion.text.strip() or completion.reasoning or completion.tool_call
        reason = "no choice could be read in the answer" if said else "the answer was empty"
        return fallback(legal, reason, completion.duration_ms, completion)
    decision = clamp(choice.action, choice.amount, legal)
    return Outcome(decision, completion, choice.source, read_note(completion.text), "", completion.duration_ms)


def fallback(
    legal: Legal,
    reason: str,
    duration_ms: int | None = None,
    completion: Completion | None = None,
    *,
    sends_nothing: bool = False,
) -> Outcome:
    """The safe action and why it was taken. What an unreadable answer cost still belongs in the ledger."""
    decision = Decision("") if sends_nothing else safe_action(legal)
    return Outcome(decision, completion, None, "", reason, duration_ms)


def legal_of(state: Frame, turn: Frame) -> Legal:
    """What may be done, from the latest `game_state` and the `your_turn`."""
    limits = turn["chipRange"] or {"min": None, "max": None}
    mine = next((seat for seat in state["seats"] if seat["seat"] == state["yourSeat"]), None)
    return Legal(
        actions=frozenset(turn["legalActions"]),
        least=limits["min"],
        most=limits["max"],
        to_call=state["toCall"] or 0,
        stack=mine["stack"] if mine else 0,
    )


def read_note(text: str) -> str:
    """The remark that an answer asks to keep: the last "note" in it, or nothing."""
    found = re.findall(r'"note"\s*:\s*("(?:[^"\\]|\\.)*")', text)
    try:
        return str(json.loads(found[-1])) if found else ""
    except ValueError:
        return ""
