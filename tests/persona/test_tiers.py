"""When the model is asked, what is read in its answer, and what happens when there is none."""

import time

import pytest

from agentlab.persona.answers import read_answer
from agentlab.persona.importance import by_rule
from agentlab.persona.ports import PortFailed, Ports
from agentlab.persona.state import SeedMemory, beliefs_from
from agentlab.persona.turn import turn

from .making import PLAIN, arrived, lived, persona, rules, shown


class Scripted:
    """A model that gives one answer, or fails, and keeps the prompts."""

    id = "scripted"

    def __init__(self, answer: str | None) -> None:
        self.answer, self.prompts = answer, []

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if self.answer is None:
            raise PortFailed("the far side is asleep")
        return self.answer


KEEN = rules(model_above=0.0)


def _once(answer: str | None, **given):
    model = Scripted(answer)
    who = persona(calls=1, **given)
    return turn(who, shown(social_proof=90), arrived(who), Ports(PLAIN.embed, model), KEEN), model


def test_a_model_reacts_writes_and_rates_in_one_call() -> None:  # PE-8
    outcome, model = _once('{"action": "reply", "text": "At last.", "importance": 9, "stances": {"levy": 0.7}}')
    reaction = outcome.reaction
    assert (reaction.tier, reaction.action, reaction.text) == ("B", "reply", "At last.")
    assert (reaction.importance, reaction.rated_by) == (0.9, "model")
    assert outcome.memories[0].importance == 0.9
    assert outcome.state.belief("levy").stance == 0.7
    assert len(model.prompts) == 1
    assert (reaction.prompt, reaction.response) == (model.prompts[0], model.answer)


@pytest.mark.parametrize("rating", ["", ', "importance": "very"', ', "importance": null', ', "importance": 85'])
def test_an_unreadable_rating_falls_back_to_the_rule_and_keeps_the_reaction(rating: str) -> None:  # PE-8
    outcome, _ = _once(f'{{"action": "share"{rating}}}')
    moved = sum(map(abs, outcome.change.values()))
    assert (outcome.reaction.tier, outcome.reaction.action, outcome.reaction.rated_by) == ("B", "share", "rule")
    assert outcome.reaction.importance == by_rule(rules().action("share"), moved)


def test_prose_that_names_one_action_is_read_and_weighed_by_the_rule() -> None:  # PE-8
    outcome, _ = _once("I would share this with everyone I know.")
    assert (outcome.reaction.tier, outcome.reaction.action, outcome.reaction.rated_by) == ("B", "share", "rule")


@pytest.mark.parametrize(
    "answer",
    ["", "{", "[]", "I might like or share it.", '{"action": "delete"}', '{"action": ["share"]}', "{" * 100_000],
)
def test_an_answer_without_a_readable_action_is_made_good_by_arithmetic_and_says_so(answer: str) -> None:  # PE-8
    outcome, _ = _once(answer)
    assert outcome.reaction.tier == "A"
    assert "no permitted action" in outcome.reaction.fallback
    assert outcome.reaction.response == answer
    assert outcome.state.counters.model_calls == 1


def test_a_model_that_does_not_answer_is_no_reaction_of_the_model() -> None:  # PE-8
    outcome, _ = _once(None)
    assert (outcome.reaction.tier, outcome.reaction.response) == ("A", None)
    assert outcome.reaction.fallback == "no answer: the far side is asleep"


@pytest.mark.parametrize(
    "answer",
    [
        'Let me think. {"action": "ignore"} No, rather:\n```json\n{"action": "like", "importance": "7/10"}\n```',
        '{"thought": {"action": "share"}} {"action": "LIKE ", "importance": "Rating: 7"}',
    ],
)
def test_the_last_object_with_a_permitted_action_counts(answer: str) -> None:  # PE-8
    found = read_answer(answer, rules())
    assert (found.action.name, found.importance) == ("like", 0.7)


@pytest.mark.parametrize(
    "stances", ['{"levy": 3}', '{"levy": "0.4"}', '{"levy": true}', '{"moon": 0.4}', "[1]", "null"]
)
def test_stances_that_cannot_be_read_are_left_to_arithmetic(stances: str) -> None:  # PE-8
    assert read_answer(f'{{"action": "like", "stances": {stances}}}', rules()).stances == {}


def test_a_lone_surrogate_in_an_answer_is_spelled_out() -> None:  # PE-8
    outcome, _ = _once('{"action": "reply", "text": "\\ud83d"}')
    assert outcome.reaction.text == "\\ud83d"


def test_the_profile_is_in_every_prompt_and_no_more_than_k_memories() -> None:  # PE-9 PE-11
    model = Scripted('{"action": "share"}')
    who = persona(profile={"age": 34, "home": "near the pool"}, calls=40)
    lived(40, who, Ports(PLAIN.embed, model), rules(model_above=0.0, k=3))
    assert len(model.prompts) == 40
    for prompt in model.prompts:
        assert "- age: 34\n- home: near the pool" in prompt
    assert "What comes to mind" not in model.prompts[0]
    recalled = model.prompts[-1].split("What comes to mind:\n")[1].split("\n\n")[0]
    assert recalled.count("\n- ") + 1 == 3


def test_the_budget_is_never_exceeded_and_the_rule_is_kept() -> None:  # PE-8
    model = Scripted('{"action": "share"}')
    _, state = lived(30, persona(calls=4), Ports(PLAIN.embed, model), rules(model_above=0.0))
    assert len(model.prompts) == state.counters.model_calls == 4
    aloof = Scripted('{"action": "share"}')
    lived(30, persona(calls=4), Ports(PLAIN.embed, aloof), rules(model_above=1.0))
    assert aloof.prompts == []


def test_a_calm_reader_is_not_worth_a_call() -> None:  # PE-8
    model = Scripted('{"action": "share"}')
    who = persona(calls=9, beliefs=beliefs_from({"levy": (0.0, 0.1)}), memories=(SeedMemory("Cats sleep a lot"),))
    outcome = turn(who, shown(stances={}), arrived(who), Ports(PLAIN.embed, model), rules(model_above=0.6))
    assert (outcome.reaction.tier, model.prompts) == ("A", [])


LOOP = "1" * 200_000  # what a model that repeats itself says


@pytest.mark.parametrize("rating", ["9" * 400, "-" + "9" * 400, f'"{LOOP}"', f'"{LOOP}/10"', "1e400"])
def test_a_number_beyond_all_bounds_is_no_rating_and_fails_nobody(rating: str) -> None:  # PE-8
    outcome, _ = _once(f'{{"action": "share", "importance": {rating}, "stances": {{"levy": {rating}}}}}')
    assert (outcome.reaction.tier, outcome.reaction.action, outcome.reaction.rated_by) == ("B", "share", "rule")


@pytest.mark.parametrize("loop", [LOOP, "rating " * 30_000, "importance: " + "-" * 200_000])
def test_an_answer_that_repeats_itself_is_read_at_once(loop: str) -> None:  # PE-8
    began = time.process_time()
    assert read_answer(f"I would share it. {loop}", rules()).action.name == "share"
    assert time.process_time() - began < 2


def test_a_negative_rating_in_prose_is_no_rating() -> None:  # PE-8
    assert read_answer("I would share it. Rating: -3", rules()).importance is None
    assert read_answer("I would share it. Rating - 8", rules()).importance == 0.8
