"""What the model is asked on tier B, and in an interview: plain text, the persona's profile always in it."""

from collections.abc import Sequence

from agentlab.persona.rules import Rules
from agentlab.persona.state import Belief, MemoryEvent, Persona, Presentation, stance_text


def about(persona: Persona, beliefs: Sequence[Belief], minds: Sequence[MemoryEvent]) -> list[str]:
    """Who the persona is, what it holds, what came to mind (no memory section where nothing did)."""
    lines = [f"You are {persona.name}.", "", "Profile:"]
    lines += [f"- {field}: {_spelled(value)}" for field, value in sorted(persona.profile.items())]
    if beliefs:
        lines += ["", "Views, from -1 (against) to 1 (for):"]
        lines += [f"- {belief.topic}: {stance_text(belief.stance)}" for belief in beliefs]
    if minds:
        lines += ["", "What comes to mind:"]
        lines += [f"- {memory.text}" for memory in minds]
    return lines


def reaction_prompt(
    persona: Persona, beliefs: Sequence[Belief], minds: Sequence[MemoryEvent], shown: Presentation, rules: Rules
) -> str:
    lines = about(persona, beliefs, minds)
    lines += ["", f"You see, from {shown.source or 'an unknown source'}, at place {shown.position} of your feed:"]
    lines += [shown.text]
    if shown.social_proof:
        lines += [f"{shown.social_proof} others have reacted to it."]
    if shown.stances:
        lines += ["", "It argues:"] + [
            f"- {topic}: {stance_text(stance)}" for topic, stance in sorted(shown.stances.items())
        ]
    lines += ["", "You may: " + ", ".join(action.name for action in rules.actions)]
    lines += [
        'Answer with one JSON object: {"action": one of these, "text": what you write or null,'
        ' "importance": how much this will stay with you, 1 to 10, "stances": {topic: your view afterwards}}'
    ]
    return "\n".join(lines)


def interview_prompt(persona: Persona, beliefs: Sequence[Belief], question: str) -> str:
    return "\n".join([*about(persona, beliefs, []), "", f"Question: {question}", "Answer in a few words."])


def _spelled(value: object) -> str:
    return "; ".join(value) if isinstance(value, list) else str(value)
