"""The house model: a small poker player behind the same door as any language model. Text in, text out.

It reads the prompt and nothing else: how to play from the strategy and the whispers, where it stands from the turn's
own sections. It answers in prose and one JSON object, sometimes fenced. Like its bigger cousins it now and then asks
for more than it may, says "bet" for "raise", or folds what is free. The same prompt and seed give the same answer.
"""

import hashlib
import json
import random
from decimal import Decimal
from functools import cache
from itertools import combinations

from pokerkit import StandardHighHand

from agentlab.hosted.house_reading import NoTurn, Spot, Style, read_spot, read_style, section
from agentlab.hosted.model_port import Completion, ModelFailed

RANKS = "23456789TJQKA"

# How often it makes the mistakes that real models make.
ASKS_TOO_MUCH = 0.03
ASKS_TOO_LITTLE = 0.015
SAYS_BET = 0.1
FOLDS_WHAT_IS_FREE = 0.01
KEEPS_A_NOTE = 0.05
FENCES = 0.6

# A feeling for how often each kind of hand is good; a real player knows more.
WORTH = {
    "High card": 0.18,
    "One pair": 0.46,
    "Two pair": 0.7,
    "Three of a kind": 0.82,
    "Straight": 0.88,
    "Flush": 0.91,
    "Full house": 0.96,
    "Four of a kind": 0.99,
    "Straight flush": 0.99,
}


class HouseModel:
    """Plays by seed and prompt alone. It costs nothing; its tokens are words, so that usage has a shape to look at."""

    name = "house-1"
    routing = "house"

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    async def complete(self, prompt: str, *, timeout: float) -> Completion:
        text = answer(prompt, self.seed)
        words, said = len(prompt.split()), len(text.split())
        return Completion(text, None, None, self.name, self.routing, words, said, Decimal(0))

    async def close(self) -> None:
        return None


def answer(prompt: str, seed: int = 0) -> str:
    """The completion. Raises ModelFailed where the prompt describes no turn."""
    script, _, turn = prompt.rpartition("\n[Table]\n")
    try:
        spot = read_spot(turn)
    except NoTurn:
        raise ModelFailed("the prompt describes no turn") from None
    digest = hashlib.sha256(f"{seed}\n{prompt}".encode("utf-8", "surrogatepass")).digest()
    player = _Player(spot, read_style(script, turn), random.Random(digest))  # noqa: S311 - play, not secrets
    if section(turn, "Whispers"):
        player.thoughts.append(_of_whispers(read_style(script), player.style))
    return player.answer()


def _of_whispers(own: Style, whispered: Style) -> str:
    """What the whispers change, and no more: whoever reads it will look whether it was done."""
    changes = []
    if whispered.enter != own.enter:
        changes.append(f"enter {'more' if whispered.enter > own.enter else 'fewer'} hands")
    if whispered.insists_on_raising and not own.insists_on_raising:
        changes.append("raise before the flop where nobody has yet")
    elif whispered.refuses_to_raise and not own.refuses_to_raise:
        changes.append("never raise")
    elif whispered.raises != own.raises:
        changes.append(f"raise {'more' if whispered.raises > own.raises else 'less'} readily")
    if not changes:
        return "No whisper changes how I play."
    return f"As was whispered, I {' and '.join(changes)}; for the rest I go by my cards."


class _Player:
    """One decision: what it thinks, in sentences, and what it does."""

    def __init__(self, spot: Spot, style: Style, rng: random.Random) -> None:
        self.spot, self.style, self.rng = spot, style, rng
        self.thoughts: list[str] = []

    def answer(self) -> str:
        if self.spot.is_unheard:
            self.thoughts.append("I have not heard how this pot was built, so I play it carefully.")
        wish = self._after_the_flop() if self.spot.board else self._before_the_flop()
        choice = self._choice(wish)
        others = [name for name in self.spot.raisers if name != "(you)"]
        if others and self.rng.random() < KEEPS_A_NOTE:
            choice["note"] = f"{others[-1]} is willing to raise"
        text = json.dumps(choice)
        if self.rng.random() < FENCES:
            text = f"```json\n{text}\n```"
        return " ".join(self.thoughts) + "\n\n" + text

    # What it would like: a share of the pot to raise by, "call", or "give up" -------------------------------------

    def _before_the_flop(self) -> float | str:
        spot, style = self.spot, self.style
        rank = hand_rank(*spot.cards) if len(spot.cards) == 2 else 0.5
        late = any(place in spot.position for place in ("BTN", "CO"))
        bar = style.enter * (1.25 if late else 0.95)
        if spot.to_call > spot.big_blind:
            # A raise tells of a better hand; the dearer it is, the better one's own must be.
            bar *= max(0.2, 0.75 - 0.02 * spot.to_call / spot.big_blind)
        if spot.is_unheard:
            bar *= 0.8
        self._think_of_start(rank)
        if style.insists_on_raising:
            if not spot.raisers and "raise" in spot.legal:
                self.thoughts.append("I am told to raise, so I do.")
                return 0.8
            self._think_of_raisers()
        if rank <= bar:
            eager = style.raises * (1.0 if rank < bar / 2 else 0.7) * (0.6 if spot.to_call > spot.big_blind else 1.0)
            if (rank < 0.02 and not style.refuses_to_raise) or self._would(eager):
                self.thoughts.append("That is worth a raise.")
                return 1.0 if spot.raisers else 0.8
            self.thoughts.append("I want to see a flop with it.")
            return "call"
        if style.enter and self._would(style.bluffs / 4):
            self.thoughts.append("They look weak, so I take a shot at it.")
            return 0.8
        self.thoughts.append("That is not good enough here.")
        return "give up"

    def _think_of_raisers(self) -> None:
        """Why an order to raise is not followed now."""
        if not self.spot.raisers:
            told = "I am told to raise, but no raise is open to me, so my cards decide."
        elif self.spot.raisers[0] == "(you)":
            told = "I have raised as I am told; whether I go on, my cards decide."
        else:
            told = f"I am told to raise, but {self.spot.raisers[0]} raised before me, so my cards decide."
        self.thoughts.append(told)

    def _would(self, chance: float) -> bool:
        """Does it raise now, by this chance? Who is told never to does not."""
        return self.rng.random() < chance and not self.style.refuses_to_raise

    def _think_of_start(self, rank: float) -> None:
        cards, spot = " ".join(self.spot.cards), self.spot
        price = f"{spot.to_call} to call" if spot.to_call else "nothing to call"
        self.thoughts.append(f"I hold {cards} ({spot.position}), about the top {max(1, round(rank * 100))} % of hands.")
        self.thoughts.append(f"There is {price} into {spot.pot}.")

    def _after_the_flop(self) -> float | str:
        spot, style = self.spot, self.style
        label, worth = made_hand(spot.cards, spot.board)
        drawing = draw(spot.cards, spot.board)
        worth += drawing
        worth = min(0.99, max(0.02, worth ** (0.8 + 0.2 * spot.opponents) + self.rng.uniform(-0.06, 0.06)))
        self.thoughts.append(f"I hold {' '.join(spot.cards)} on {' '.join(spot.board)}: {label.lower()}.")
        if drawing:
            self.thoughts.append("There is a draw to go with it.")
        if spot.is_unheard:
            worth *= 0.85
        return self._price(worth, style) if spot.to_call else self._first_in(worth, style)

    def _first_in(self, worth: float, style: Style) -> float | str:
        if worth > 0.62 and self._would(0.2 + style.raises):
            self.thoughts.append("I am likely ahead and bet for value.")
            return 0.66
        if worth > 0.4 and self._would(style.raises * 0.6):
            self.thoughts.append("A small bet may take it now.")
            return 0.4
        if self._would(style.bluffs):
            self.thoughts.append("I have little, but the board can frighten them.")
            return 0.5
        self.thoughts.append("I take the free card.")
        return "call"

    def _price(self, worth: float, style: Style) -> float | str:
        spot = self.spot
        needed = spot.to_call / (spot.pot + spot.to_call)
        self.thoughts.append(f"{spot.to_call} into {spot.pot} needs {needed:.0%}; I give myself {worth:.0%}.")
        if worth > 0.72 and self._would(0.15 + style.raises * 0.8):
            self.thoughts.append("I raise.")
            return 0.9
        # Who likes to see cards pays a little more than they are worth.
        if worth + (style.enter - 0.3) * 0.3 > needed + 0.08:
            self.thoughts.append("The price is right.")
            return "call"
        if self._would(style.bluffs * 0.4):
            self.thoughts.append("I do not believe them.")
            return 0.8
        self.thoughts.append("Too dear.")
        return "give up"

    # What it says, mistakes included ------------------------------------------------------------------------------

    def _choice(self, wish: float | str) -> dict[str, str | int]:
        spot = self.spot
        if isinstance(wish, float) and "raise" in spot.legal:
            return self._raise(wish)
        if isinstance(wish, float):
            self.thoughts.append("No raise is open to me.")
        if wish == "give up" and "check" not in spot.legal:
            return {"action": "fold"}
        if "check" in spot.legal:
            return {"action": "fold" if wish == "give up" and self.rng.random() < FOLDS_WHAT_IS_FREE else "check"}
        return {"action": "call"}

    def _raise(self, share: float) -> dict[str, str | int]:
        spot, rng = self.spot, self.rng
        verb = "bet" if not spot.to_call and spot.board and rng.random() < SAYS_BET else "raise"
        total = spot.bet + spot.to_call + round(share * (spot.pot + spot.to_call))
        total = min(max(total, spot.least), spot.most)
        if total > 0.6 * spot.most:
            # Too little would be left behind. People say their stack; the table counts what lies in front as well.
            self.thoughts.append("That commits me, so all of it goes in.")
            return {"action": verb, "amount": spot.stack}
        slip = rng.random()
        if slip < ASKS_TOO_MUCH:
            return {"action": verb, "amount": spot.most + spot.pot}
        if slip < ASKS_TOO_MUCH + ASKS_TOO_LITTLE and spot.least > spot.bet + spot.to_call + 1:
            return {"action": verb, "amount": spot.bet + spot.to_call + 1}
        return {"action": verb, "amount": total}


# What cards are worth --------------------------------------------------------------------------------------------


def hand_rank(first: str, second: str) -> float:
    """The share of all starting hands that are at least as good, by Chen's points: AA near 0, 72 offsuit 1."""
    return _chen_ranks()[_chen(first, second)]


def _chen(first: str, second: str) -> float:
    """Bill Chen's points for two cards. https://en.wikipedia.org/wiki/Texas_hold_%27em_starting_hands#Chen_formula"""
    low, high = sorted((RANKS.index(first[0]), RANKS.index(second[0])))
    points = {12: 10.0, 11: 8.0, 10: 7.0, 9: 6.0}.get(high, (high + 2) / 2)
    if low == high:
        return max(5.0, points * 2)
    if first[1] == second[1]:
        points += 2
    gap = high - low - 1
    points -= (0, 1, 2, 4)[gap] if gap < 4 else 5
    if gap <= 1 and high < 10:
        points += 1
    return points


@cache
def _chen_ranks() -> dict[float, float]:
    """Points to the share of the 1,326 starting hands that have as many or more."""
    deck = [rank + suit for rank in RANKS for suit in "cdhs"]
    points = sorted((_chen(a, b) for a, b in combinations(deck, 2)), reverse=True)
    return {value: (index + 1) / len(points) for index, value in enumerate(points)}


def made_hand(cards: tuple[str, ...], board: tuple[str, ...]) -> tuple[str, float]:
    """The best hand's kind, and how often it is good; what the board alone holds is everybody's and worth less."""
    if len(cards) != 2:
        return "cards unknown", 0.2
    label = str(StandardHighHand.from_game("".join(cards), "".join(board)).entry.label)
    worth = WORTH[label]
    if label == "One pair":
        pair = next((card for card in cards if card[0] in {other[0] for other in board}), None)
        if pair is None and cards[0][0] != cards[1][0]:
            return "a pair on the board", 0.2
        top = max(RANKS.index(card[0]) for card in board)
        worth += 0.12 if RANKS.index((pair or cards[0])[0]) >= top else -0.08
    elif len(board) == 5 and label == str(StandardHighHand.from_game("", "".join(board)).entry.label):
        return f"{label.lower()}, all on the board", 0.25
    return label, worth


def draw(cards: tuple[str, ...], board: tuple[str, ...]) -> float:
    """What a flush or open straight draw adds while cards are still to come."""
    if len(board) not in (3, 4) or len(cards) != 2:
        return 0.0
    everything = cards + board
    suited = max(sum(card[1] == suit for card in everything) for suit in {card[1] for card in cards})
    held = {RANKS.index(card[0]) for card in everything}
    straight = any({low, low + 1, low + 2, low + 3} <= held for low in range(9))
    return (0.17 if suited == 4 else 0.0) + (0.12 if straight else 0.0)
