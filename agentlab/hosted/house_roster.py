"""The house agents: what a new table is filled with, and an example of how an agent is written.

The base prompt and the skills are written for a real model; the strategies are four temperaments. The built-in
house model reads the same words (see model_house.py), so a changed strategy changes how it plays.
"""

from dataclasses import dataclass, field

SKILLS = {
    "Pot odds": """\
Before calling, compare the price with your chance to win. You need at least to-call / (pot + to-call): calling 100 \
into 300 needs 25 %. Count outs on the flop and turn: an open straight draw has 8, a flush draw 9, two overcards 6 \
weak ones. One card to come is worth about 2 % an out, two cards about 4 %. Add something for what you can still win \
later when you hit, and take something off when others act behind you.""",
    "Position and starting hands": """\
The later you act, the more you know. From the first seats enter with pairs of eights and better, A-Q and better, K-Q \
suited. In the middle add the smaller pairs, suited aces and suited broadway cards. On the button and the cut-off add \
suited connectors and most aces. In the small blind you will be first to act for the rest of the hand: defend little. \
In the big blind you have paid already: the price decides.""",
    "Bet sizing": """\
Open to about two and a half big blinds, one more for each player who has limped. Raise again to about three times the \
last raise. After the flop bet a third of the pot on dry boards, two thirds on boards with draws, and more only with \
the best hands or with none at all. Do not leave yourself less than half a pot behind: then all-in is the better bet. \
Say the total for the street.""",
    "Reading opponents": """\
Use the recent hands. Somebody who shows weak cards at showdown calls too much: bet your good hands for more and do \
not bluff them. Somebody who has folded most hands has a strong one when they raise: give up the middling ones. A bet \
into several players means more than one into a single player. Write a note when you see a habit.""",
}

TEMPERAMENTS = {
    "tight-aggressive": """\
Play tight and aggressive. Enter with about one hand in five and fold the rest without regret. When you enter, raise; \
when you hold the better hand, keep betting it. Bluff seldom, and only with a draw behind the bluff. Give up when a \
patient opponent raises you and you hold one pair.""",
    "loose-aggressive": """\
Play loose and aggressive. Enter with about one hand in two, most of them with a raise, and put pressure on every sign \
of weakness. Bluff often, on boards that frighten. Make them guess for their whole stack, and do not fall in love with \
a hand once somebody has called you twice.""",
    "tight-passive": """\
Play tight and passive: patience pays the rent. Enter with about one hand in six. Prefer a call to a raise unless you \
hold one of the very best hands. Never bluff. Fold when the price is high and your hand is not.""",
    "loose-passive": """\
Play loose and passive. Enter with about three hands in five, because you came to see flops. Call to see the next card \
with any pair or draw, and raise only with two pair or better. Never bluff: let them do the betting.""",
}


@dataclass(frozen=True, slots=True)
class HouseAgent:
    """One resident of the house: a slug for keys, a name for people, a temperament and its skills."""

    slug: str
    name: str
    temperament: str
    skills: tuple[str, ...] = field(default=("Pot odds", "Bet sizing"))

    @property
    def strategy(self) -> str:
        return TEMPERAMENTS[self.temperament]

    @property
    def skill_sections(self) -> list[dict[str, str]]:
        """As AgentVersion.skills keeps them."""
        return [{"name": name, "text": SKILLS[name]} for name in self.skills]


HOUSE = (
    HouseAgent("rocky", "Rocky", "tight-aggressive", ("Position and starting hands", "Pot odds", "Bet sizing")),
    HouseAgent("bluffy", "Bluffy", "loose-aggressive", ("Bet sizing", "Reading opponents")),
    HouseAgent("nit", "Nit", "tight-passive", ("Position and starting hands", "Pot odds")),
    HouseAgent("callie", "Callie", "loose-passive", ("Pot odds", "Reading opponents")),
    HouseAgent("duchess", "Duchess", "tight-aggressive", ("Position and starting hands", "Reading opponents")),
    HouseAgent("maverick", "Maverick", "loose-aggressive", ("Position and starting hands", "Bet sizing")),
    HouseAgent("moss", "Moss", "tight-passive", ("Pot odds", "Reading opponents")),
    HouseAgent("breeze", "Breeze", "loose-passive", ("Pot odds", "Bet sizing")),
    HouseAgent("quill", "Quill", "tight-aggressive", ("Pot odds", "Bet sizing", "Reading opponents")),
)
