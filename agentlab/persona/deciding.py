"""Which tier answers, and what it answers.

The rule: the model is asked where the study has one, the persona's share of the budget is not used up, and the stimulus
arouses it enough (`model_above`). The budget is shared out before the first turn (see `study`), so the choice depends
on nothing that other personas do. An answer that cannot be read, or none, is made good by arithmetic and says so.
"""

from collections.abc import Sequence

import msgspec

from agentlab.persona import reaction
from agentlab.persona.answers import Answer, read_answer
from agentlab.persona.events import Reacted, Recalled
from agentlab.persona.importance import by_rule
from agentlab.persona.ports import CompletionPort, PortFailed, Ports
from agentlab.persona.prompting import reaction_prompt
from agentlab.persona.reaction import Appraisal
from agentlab.persona.rules import Action, Rules
from agentlab.persona.state import Belief, Persona, PersonaState, Presentation
from agentlab.persona.values import clean, draw


def decide(
    persona: Persona, shown: Presentation, state: PersonaState, ports: Ports, rules: Rules, recalled: Sequence[Recalled]
) -> tuple[Reacted, tuple[Belief, ...]]:
    """The reaction, and the beliefs after it."""
    minds = {memory.id: memory for memory in state.memories}
    felt = reaction.appraise(persona, state.beliefs, shown, recalled, minds)
    after = reaction.persuade(state.beliefs, shown, felt.influence, rules)
    if ports.complete is None or not for_model(persona, state, felt, rules):
        action = reaction.choose(rules, felt, draw(state.study, persona.id, shown.turn))
        return _reacted(shown, recalled, felt, action, state, after), after
    prompt = reaction_prompt(persona, state.beliefs, [minds[one.memory] for one in recalled], shown, rules)
    response, answer, fallback = _asked(ports.complete, prompt, rules)
    if answer is None:
        action = reaction.choose(rules, felt, draw(state.study, persona.id, shown.turn))
        plain = _reacted(shown, recalled, felt, action, state, after)
        return msgspec.structs.replace(plain, prompt=prompt, response=response, fallback=fallback), after
    after = _said(after, shown, answer)
    rated = _reacted(shown, recalled, felt, answer.action, state, after)
    if answer.importance is not None:
        rated = msgspec.structs.replace(rated, importance=answer.importance, rated_by="model")
    return msgspec.structs.replace(rated, tier="B", text=answer.text, prompt=prompt, response=response), after


def for_model(persona: Persona, state: PersonaState, felt: Appraisal, rules: Rules) -> bool:
    """The stated rule of the two tiers."""
    return state.counters.model_calls < persona.calls and felt.arousal >= rules.model_above


def _asked(model: CompletionPort, prompt: str, rules: Rules) -> tuple[str | None, Answer | None, str]:
    """(response, what was read in it, why arithmetic must answer)"""
    try:
        response = clean(model.complete(prompt))
    except PortFailed as failure:
        return None, None, f"no answer: {failure}"
    answer = read_answer(response, rules)
    return response, answer, "" if answer else "the answer names no permitted action"


def _said(beliefs: tuple[Belief, ...], shown: Presentation, answer: Answer) -> tuple[Belief, ...]:
    """A stance that the model states on what the stimulus argues is the stance; confidence stays arithmetic."""
    stated = {topic: stance for topic, stance in answer.stances.items() if topic in shown.stances}
    return tuple(Belief(belief.topic, stated.get(belief.topic, belief.stance), belief.confidence) for belief in beliefs)


def _reacted(
    shown: Presentation,
    recalled: Sequence[Recalled],
    felt: Appraisal,
    action: Action,
    state: PersonaState,
    after: tuple[Belief, ...],
) -> Reacted:
    moved = sum(abs(delta) for delta in reaction.change(state.beliefs, after).values())
    return Reacted(
        shown=shown,
        recalled=tuple(recalled),
        tier="A",
        action=action.name,
        text=None,
        importance=by_rule(action, moved),
        rated_by="rule",
        arousal=felt.arousal,
        appraisal=felt.valence,
    )
