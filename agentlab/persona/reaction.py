"""Tier A: a reaction by arithmetic over beliefs and what came to mind.

Each formula is a standard one, named where it stands; constants without a source are this engine's own and are named.
Everything lies in [-1, 1] or [0, 1].
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agentlab.persona.events import Recalled
from agentlab.persona.rules import Action, Rules
from agentlab.persona.state import Belief, MemoryEvent, MemoryId, Persona, Presentation
from agentlab.persona.values import clip

TRUST = 0.5  # in a source that the persona does not know
SOCIAL_HALF = 50  # that many others' reactions make half of the social effect
SMOOTHING = 0.2  # of confidence


@dataclass(frozen=True)
class Appraisal:
    """How a stimulus strikes a persona: `arousal` in [0, 1] whether it moves it at all, `valence` in [-1, 1] which way,
    `influence` in [0, 1] how far it can persuade."""

    arousal: float
    valence: float
    influence: float


class Argued(NamedTuple):
    """A topic of the stimulus that the persona has a belief about."""

    topic: str
    stance: float
    belief: Belief


@dataclass(frozen=True)
class Grounds:
    """What an appraisal is made of. Each lies in [0, 1], but for `agreement` and `remembered`, which lie in [-1, 1],
    and `support`, the sum of the scores of what came to mind."""

    attention: float
    social: float
    argued: tuple[Argued, ...]
    relevance: float
    agreement: float
    support: float
    familiar: float
    remembered: float

    @property
    def arousal(self) -> float:
        felt = 1.0 - (1.0 - self.relevance) * (1.0 - self.familiar) * (1.0 - self.social)
        return clip(self.attention * felt, 0.0, 1.0)

    @property
    def valence(self) -> float:
        return clip((1.0 - self.familiar) * self.agreement + self.familiar * self.remembered, -1.0, 1.0)


def appraise(
    persona: Persona,
    beliefs: Sequence[Belief],
    shown: Presentation,
    recalled: Sequence[Recalled],
    minds: Mapping[MemoryId, MemoryEvent],
) -> Appraisal:
    """`grounds`, and how far the source is trusted."""
    found = grounds(beliefs, shown, recalled, minds)
    influence = persona.trust.get(shown.source, TRUST) * found.attention * (1.0 + found.social) / 2.0
    return Appraisal(found.arousal, found.valence, influence)


def grounds(
    beliefs: Sequence[Belief],
    shown: Presentation,
    recalled: Sequence[Recalled],
    minds: Mapping[MemoryId, MemoryEvent],
) -> Grounds:
    """Attention falls with the place in the feed as 1 / log2(1 + position) (Järvelin & Kekäläinen, 2002). The social
    effect of n others grows ever more slowly (Latané, 1981), here n / (n + 50). Agreement is the product of stances
    (directional theory, Rabinowitz & Macdonald, 1989), weighted with confidence. Arousal is a noisy-or of relevance,
    familiarity and social effect (Pearl, 1988), as far as attention reaches."""
    attention = 1.0 / math.log2(1 + shown.position)
    social = shown.social_proof / (shown.social_proof + SOCIAL_HALF)
    held = {belief.topic: belief for belief in beliefs}
    argued = tuple(
        Argued(topic, stance, held[topic]) for topic, stance in sorted(shown.stances.items()) if topic in held
    )
    agreement = _mean([stance * belief.stance * belief.confidence for _, stance, belief in argued])
    relevance = _mean([abs(stance) * belief.confidence for _, stance, belief in argued])
    support = sum(one.score for one in recalled)
    familiar = support / (1.0 + support)
    remembered = sum(one.score * minds[one.memory].valence for one in recalled) / support if support else 0.0
    return Grounds(attention, social, argued, relevance, agreement, support, familiar, remembered)


def choose(rules: Rules, felt: Appraisal, chance: float) -> Action:
    """A draw from the multinomial logit of the actions' utilities (McFadden, 1974); `chance` is in [0, 1).

    Utility: arousal, plus how well the action's valence fits the appraisal's (an action of valence 0 fits strong
    feelings of either kind), minus its effort; 0 for doing nothing.
    """
    weights = _weights(rules, felt)
    left = chance * sum(weights)
    for action, weight in zip(rules.actions, weights, strict=True):
        left -= weight
        if left < 0:
            return action
    return rules.actions[-1]


def odds(rules: Rules, felt: Appraisal) -> dict[str, float]:
    """Of each action, in the study's order, the share of the chances in which `choose` takes it."""
    weights = _weights(rules, felt)
    return {action.name: weight / sum(weights) for action, weight in zip(rules.actions, weights, strict=True)}


def _weights(rules: Rules, felt: Appraisal) -> list[float]:
    utilities = [_utility(action, felt) / rules.temperature for action in rules.actions]
    most = max(utilities)  # taken off, or a low temperature would overflow
    return [math.exp(utility - most) for utility in utilities]


def persuade(beliefs: Sequence[Belief], shown: Presentation, influence: float, rules: Rules) -> tuple[Belief, ...]:
    """The beliefs after the stimulus. A stance moves towards an argument within `tolerance` of it, by rate ·
    influence · (1 - confidence) of the gap (bounded confidence: Deffuant et al., 2000); one farther off leaves it
    where it is. Confidence follows agreement by exponential smoothing (Brown, 1956)."""
    return tuple(_moved(belief, shown.stances.get(belief.topic), influence, rules) for belief in beliefs)


def change(before: Sequence[Belief], after: Sequence[Belief]) -> dict[str, float]:
    """Δ stance for each topic whose stance moved."""
    moved = {new.topic: new.stance - old.stance for old, new in zip(before, after, strict=True)}
    return {topic: delta for topic, delta in moved.items() if delta}


def _moved(belief: Belief, argued: float | None, influence: float, rules: Rules) -> Belief:
    if argued is None:
        return belief
    gap = argued - belief.stance
    step = rules.rate * influence * (1.0 - belief.confidence) * gap if abs(gap) <= rules.tolerance else 0.0
    agreement = 1.0 - abs(gap) / 2.0
    confidence = belief.confidence + SMOOTHING * rules.rate * influence * (agreement - belief.confidence)
    return Belief(belief.topic, clip(belief.stance + step, -1.0, 1.0), clip(confidence, 0.0, 1.0))


def _utility(action: Action, felt: Appraisal) -> float:
    if action.idle:
        return 0.0
    fit = action.valence * felt.valence if action.valence else abs(felt.valence)
    return felt.arousal + fit - action.effort


def _mean(parts: Sequence[float]) -> float:
    return sum(parts) / len(parts) if parts else 0.0
