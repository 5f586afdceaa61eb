"""Turns of a busy table, the same for every run: some 15 KB each as JSON, seven prompt prefixes, histories that fill.

The parts of a turn, in bytes of JSON: a prefix of 6,000 and a remainder of 2,000 of prompt, 1,200 of response, and of
what the agent knew 1,500 of state, up to twenty actions of 90, up to twenty past hands of 300 and a few notes.
"""

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

TURNS, PREFIXES = 1_353, 7
_TALK = """pot odds equity range fold raise call check bluff value river turn flop button blind stack depth tight loose
passive sizing polar merged board texture wet paired suited gap overcard draw flush straight outs blocker showdown thin
protection initiative probe overbet shove commit leverage implied the of with when because given then their never"""
WORDS = _TALK.split()
CARDS = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]


class Workload(NamedTuple):
    """One turn as an agent's loop has it in hand once its model has answered."""

    agent_id: str
    table_id: str
    hand_number: int
    action_index: int
    envelope: str
    remainder: str
    response: str
    message: dict[str, Any]
    state: dict[str, Any]
    action_log: list[dict[str, Any]]
    hand_history: list[dict[str, Any]]
    notes: list[str]
    cost: float

    def as_json(self) -> str:
        """The whole turn in one text, as a recorder without a plan would store it."""
        return json.dumps(self._asdict())


def words(chance: random.Random, size: int) -> str:
    text = " ".join(chance.choices(WORDS, k=size // 4))
    return text[:size]


def turns(count: int = TURNS, seed: int = 7) -> Iterator[Workload]:
    chance = random.Random(seed)
    prefixes = [f"You are player {number}.\n" + words(chance, 6_000) for number in range(PREFIXES)]
    log: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []
    notes: list[str] = []
    hand = 1
    for number in range(count):
        who = number % PREFIXES
        verb = chance.choice(["fold", "check", "call", "raise"])
        message = {"type": "action", "action": verb, "amount": chance.randrange(2_000), "handNumber": hand}
        yield Workload(
            agent_id=f"agent-{who}",
            table_id="table-1",
            hand_number=hand,
            action_index=len(log),
            envelope=prefixes[who],
            remainder=f"Hand {hand}. " + words(chance, 1_990),
            response=words(chance, 1_050) + "\n\n```json\n" + json.dumps(message, indent=2) + "\n```",
            message=message,
            state=_state(chance, hand),
            action_log=[dict(action) for action in log[-20:]],
            hand_history=[dict(past) for past in history],
            notes=list(notes),
            cost=round(chance.random() / 100, 6),
        )
        log.append(
            {"seat": who, "street": "flop", "action": verb, "amount": message["amount"], "pot": chance.randrange(9_000)}
        )
        if chance.random() < 0.12:
            history = [*history, _past_hand(chance, hand)][-20:]
            notes = [*notes, words(chance, 90)][-6:]
            log, hand = [], hand + 1


def _state(chance: random.Random, hand: int) -> dict[str, Any]:
    seats = [
        {
            "seat": seat,
            "name": f"Player {seat}",
            "stack": chance.randrange(20_000),
            "inHand": chance.random() < 0.7,
            "vpip": round(chance.random(), 3),
            "pfr": round(chance.random(), 3),
            "aggression": round(chance.random() * 4, 2),
            "lastAction": chance.choice(["fold", "call", "raise"]),
        }
        for seat in range(PREFIXES)
    ]
    cards = chance.sample(CARDS, 7)
    return {
        "handNumber": hand,
        "board": cards[:5],
        "holeCards": cards[5:],
        "pot": chance.randrange(9_000),
        "seats": seats,
    }


def _past_hand(chance: random.Random, hand: int) -> dict[str, Any]:
    return {
        "handNumber": hand,
        "board": chance.sample(CARDS, 5),
        "winner": chance.randrange(PREFIXES),
        "pot": chance.randrange(9_000),
        "showdown": chance.random() < 0.4,
        "summary": words(chance, 130),
    }
