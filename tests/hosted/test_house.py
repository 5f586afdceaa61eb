import asyncio
import random
from collections import Counter

import pytest

from agentlab.agents.base_prompt import BASE_PROMPT
from agentlab.hosted.decide import clamp
from agentlab.hosted.deciding import legal_of, read_note
from agentlab.hosted.frames import ChipRange
from agentlab.hosted.house_reading import Style, read_style
from agentlab.hosted.house_roster import HOUSE, SKILLS, TEMPERAMENTS
from agentlab.hosted.model_house import HouseModel, answer, draw, hand_rank, made_hand
from agentlab.hosted.model_port import ModelFailed
from capture.choice import parse_choice
from tests.hosted.scenes import game_state, player_action, prompt_for, wire, your_turn

DECK = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
BY_TEMPER = {resident.temperament: resident for resident in reversed(HOUSE)}
ROCKY = HOUSE[0]


def choices(temperament, count=400, **scene):
    """What one temperament chooses on the same random hands as every other."""
    rng = random.Random(5)
    chosen = []
    for number in range(count):
        cards = rng.sample(DECK, 2)
        text = answer(prompt_for(BY_TEMPER[temperament], hole_cards=cards, hand_number=number + 1, **scene))
        chosen.append(parse_choice(text))
    return chosen


def shares(temperament):
    counts = Counter(choice.action for choice in choices(temperament))
    total = counts.total()
    return {"enter": 1 - counts["fold"] / total, "raise": counts["raise"] / total, "fold": counts["fold"] / total}


def test_four_temperaments_enter_raise_and_fold_measurably_differently():
    # HA-5
    tight_aggressive, loose_aggressive = shares("tight-aggressive"), shares("loose-aggressive")
    tight_passive, loose_passive = shares("tight-passive"), shares("loose-passive")
    for loose in (loose_aggressive, loose_passive):
        for tight in (tight_aggressive, tight_passive):
            assert loose["enter"] > tight["enter"] + 0.15
            assert loose["fold"] < tight["fold"] - 0.15
    assert tight_aggressive["raise"] > 2 * tight_passive["raise"]
    assert loose_aggressive["raise"] > 2 * loose_passive["raise"]


def test_who_is_told_to_raise_every_hand_is_the_first_to_raise_whatever_they_hold():
    # HA-5
    told = read_style("[Strategy]\nPlay tight and passive.", "[Whispers]\nada: Raise every hand")
    assert told.insists_on_raising
    assert not read_style(
        "[Strategy]\nPlay loose and aggressive.", "[Whispers]\nada: be more aggressive"
    ).insists_on_raising
    whisper = [{"author": "ada", "at": "2026-11-01 12:00", "text": "Raise every hand"}]
    assert {choice.action for choice in choices("tight-passive", 100, whispers=whisper)} == {"raise"}


def test_it_plays_by_the_words_of_the_strategy_not_by_who_it_is():
    # HA-5
    loose = read_style(
        "base\n\n[Strategy]\nPlay loose and aggressive. Enter with about one hand in two.\n\n[Skill: x]\ny"
    )
    tight = read_style("base\n\n[Strategy]\nPlay tight. Enter with 15 % of hands. Never bluff.")
    assert loose.enter == 0.5
    assert loose.raises > 0.7
    assert tight.enter == 0.15
    assert tight.bluffs == 0


def test_a_whisper_changes_how_it_plays():
    # HA-12
    whisper = [{"author": "ada", "at": "2026-11-01 12:00", "text": "Play tighter tonight."}]
    as_told = Counter(choice.action for choice in choices("loose-passive", whispers=whisper))
    as_ever = Counter(choice.action for choice in choices("loose-passive"))
    assert as_told["fold"] > as_ever["fold"] + 40


def test_it_takes_plain_words_at_their_word():
    # HA-5, HA-12
    assert read_style("[Strategy]\nPlay every hand, and always raise.") == Style(1.0, 1.0, 0.1)
    assert read_style("[Strategy]\nFold every hand.").enter == 0
    shifted = read_style("[Strategy]\nPlay tight and passive.", "[Whispers]\n- ada, 20:15: Raise every hand!")
    assert (shifted.enter, shifted.raises) == (1.0, 1.0)
    assert read_style("[Strategy]\nPlay tight.", "[Whispers]\n- ada: two hands in three").enter == 2 / 3


def test_it_says_whether_a_whisper_told_it_anything():
    # HA-12
    def told(text):
        return answer(prompt_for(ROCKY, whispers=[{"author": "ada", "at": "2026-11-01 12:00", "text": text}]))

    assert "As was whispered, I enter more hands; for the rest I go by my cards." in told("Play loose.")
    assert "No whisper changes how I play." in told("Good luck tonight!")
    assert "whisper" not in answer(prompt_for(ROCKY))


TO_RAISE = [{"author": "ada", "at": "2026-11-01 12:00", "text": "Raise every hand"}]


def raised_by(who):
    return [player_action(0, who, "raise", 300, seat=0 if who == "rocky" else 1)]


def test_who_is_told_to_raise_every_hand_says_so_where_it_does_not():
    # HA-12
    def told(**scene):
        text = answer(prompt_for(ROCKY, hole_cards=["7d", "2c"], whispers=TO_RAISE, **scene))
        return text, parse_choice(text).action

    text, action = told()
    assert (action, "I am told to raise, so I do." in text) == ("raise", True)
    text, action = told(to_call=300, log=raised_by("nit"))
    assert (action, "I am told to raise, but nit raised before me, so my cards decide." in text) == ("fold", True)
    text, action = told(turn=your_turn(legal_actions=["fold", "call"], chip_range=None))
    assert (action, "no raise is open to me, so my cards decide." in text) == ("call", True)
    text, _ = told(log=raised_by("rocky"))
    assert "I have raised as I am told; whether I go on, my cards decide." in text
    assert "raise before the flop where nobody has yet" in text


def test_who_is_told_never_to_raise_never_does():
    # HA-12
    whisper = [{"author": "ada", "at": "2026-11-01 12:00", "text": "Never raise, and play every hand."}]
    assert "raise" not in {choice.action for choice in choices("loose-aggressive", whispers=whisper)}
    flop = {"board": ["7h", "Td", "2c"], "street": "flop", "log": raised_by("nit")}
    assert not {"raise", "bet"} & {one.action for one in choices("loose-aggressive", 50, whispers=whisper, **flop)}
    text = answer(prompt_for(ROCKY, hole_cards=["Ad", "Ac"], whispers=whisper))
    assert "I enter more hands and never raise; for the rest I go by my cards." in text
    assert parse_choice(text).action == "call"
    shy = read_style("[Strategy]\nPlay tight and passive.", "[Whispers]\nada: be passive")
    assert not shy.refuses_to_raise  # a mood is no order


def test_every_answer_is_prose_and_one_choice_that_the_parser_reads_sometimes_fenced():
    # HA-5, HA-6
    texts = [answer(prompt_for(ROCKY, hole_cards=cards)) for cards in zip(DECK[::2], DECK[1::2], strict=True)]
    assert all(parse_choice(text).source == "content" for text in texts)
    assert all(len(text.partition("{")[0].split()) > 8 for text in texts)
    assert {"```json" in text for text in texts} == {True, False}


def test_the_same_prompt_and_seed_give_the_same_answer_and_another_seed_may_not():
    # HA-5
    prompt = prompt_for(BY_TEMPER["loose-aggressive"], hole_cards=["9h", "8h"])
    assert answer(prompt, 1) == answer(prompt, 1)
    assert len({answer(prompt, seed) for seed in range(30)}) > 1


def test_now_and_then_it_asks_for_more_than_it_may_and_the_clamp_says_so():
    # HA-6
    legal = legal_of(wire(game_state()), wire(your_turn()))
    decisions = [clamp(choice.action, choice.amount, legal) for choice in choices("loose-aggressive", count=1000)]
    clamped = [decision for decision in decisions if decision.change == "clamp"]
    assert any(decision.asked_amount > legal.most for decision in clamped)
    assert any(decision.asked_amount < legal.least for decision in clamped)
    assert len(clamped) < 0.1 * len(decisions)


def test_it_says_that_it_has_not_heard_how_the_pot_was_built():
    # VW-9
    scene = {"pot": 900, "street": "flop", "board": ["7h", "Td", "2c"], "action_index": 6}
    assert "have not heard" in answer(prompt_for(ROCKY, **scene))
    assert "have not heard" not in answer(prompt_for(ROCKY, **scene, log=[player_action(0, "rocky", "raise", 300)]))
    assert "have not heard" not in answer(prompt_for(ROCKY))


def test_a_note_that_it_keeps_can_be_read_from_its_answer():
    # HA-2
    log = [player_action(0, "nit", "raise", 300, seat=1)]
    texts = [answer(prompt_for(ROCKY, hand_number=number, log=log)) for number in range(1, 200)]
    notes = {note for text in texts if (note := read_note(text))}
    assert notes == {"nit is willing to raise"}
    log.append(player_action(1, "rocky", "raise", 600))  # a raise of its own tells it nothing of anybody
    own = [answer(prompt_for(ROCKY, hand_number=number, log=log)) for number in range(1, 200)]
    notes = {note for text in own if (note := read_note(text))}
    assert notes == {"nit is willing to raise"}


def test_it_answers_where_only_all_in_or_only_a_call_is_left():
    # HA-6
    narrow = your_turn(chip_range=ChipRange(min=90, max=90))
    none = your_turn(legal_actions=["fold", "call"], chip_range=None)
    for turn in (narrow, none):
        legal = legal_of(wire(game_state()), wire(turn))
        for choice in choices("loose-aggressive", count=60, turn=turn):
            assert clamp(choice.action, choice.amount, legal).action in legal.actions


def test_a_prompt_that_describes_no_turn_is_a_failure_not_a_guess():
    # HA-5
    for prompt in ("", "What is two and two?", BASE_PROMPT, "x\n[Table]\nHand 1, blinds 50/100."):
        with pytest.raises(ModelFailed):
            answer(prompt)


def test_it_reports_its_usage_and_costs_nothing():
    # HA-5
    completion = asyncio.run(HouseModel().complete(prompt_for(ROCKY), timeout=1))
    assert (completion.model, completion.routing, completion.cost) == ("house-1", "house", 0)
    assert completion.input_tokens > 500
    assert completion.output_tokens > 10


def test_it_knows_good_cards_from_bad_ones():
    ranks = [hand_rank(*pair) for pair in (("Ac", "Ad"), ("Ac", "Kc"), ("8c", "7c"), ("Jh", "5d"), ("7c", "2d"))]
    assert ranks == sorted(ranks)
    assert ranks[0] < 0.01
    assert ranks[-1] == 1.0
    top_pair, low_pair = made_hand(("Ac", "Kd"), ("Ah", "8s", "9c")), made_hand(("8c", "Kd"), ("Ah", "8s", "9c"))
    assert top_pair[1] > low_pair[1] > made_hand(("2c", "3d"), ("Ah", "8s", "8c"))[1]
    assert made_hand(("Ac", "2d"), ("7h", "8s", "9c", "Td", "Js"))[0] == "straight, all on the board"
    assert draw(("Ah", "Kh"), ("2h", "9h", "5c")) > 0
    assert draw(("Ah", "Kh"), ("2h", "9h", "5c", "7d", "Js")) == 0


def test_the_roster_gives_every_temperament_and_at_least_two_skills_to_each():
    # HA-4, HA-11
    assert {resident.temperament for resident in HOUSE[:4]} == set(TEMPERAMENTS)
    assert len({resident.slug for resident in HOUSE}) == len(HOUSE) == 9
    assert all(len(resident.skills) >= 2 and set(resident.skills) <= set(SKILLS) for resident in HOUSE)
