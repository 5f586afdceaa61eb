"""Does a persona still know who it is? Asked on a schedule, traced, and without touching its state."""

import pytest

from agentlab.persona.events import Probed, label, read_payload
from agentlab.persona.ports import Ports
from agentlab.persona.probes import interview, probe, read_stance
from agentlab.persona.rules import Ask
from agentlab.persona.state import beliefs_from
from agentlab.persona.values import canonical

from .making import PLAIN, RULED, lived, persona, rules
from .test_tiers import Scripted

ASKS = (Ask(field="age"), Ask(field="home"), Ask(topic="levy"))
BY = rules(probe_every=5, probe_ask=ASKS, drift_above=0.25)
WHO = persona(profile={"age": 34, "home": "near the old pool"})


def test_probes_run_on_their_schedule_and_are_traced() -> None:  # PE-11
    events, _ = lived(12, WHO, RULED, BY)
    probed = [(event.turn, read_payload(event.payload).probe) for event in events if event.kind == "probed"]
    assert probed == [(turn, ask) for turn in (5, 10) for ask in ("age", "home", "opinion:levy")]


def test_a_persona_that_reads_its_profile_does_not_drift_from_it() -> None:  # PE-11
    events, _ = lived(5, WHO, RULED, BY)
    answers = [read_payload(event.payload) for event in events if event.kind == "probed"]
    assert [(one.expected, one.given, one.drifted) for one in answers[:2]] == [
        ("34", "34", False),
        ("near the old pool", "near the old pool", False),
    ]


def test_a_wrong_answer_is_traced_as_drift() -> None:  # PE-11
    events, _ = lived(5, WHO, Ports(PLAIN.embed, Scripted("I am 27 and live by the sea")), BY)
    found = [event for event in events if event.kind == "probed"]
    age = read_payload(found[0].payload)
    assert isinstance(age, Probed)
    assert (age.expected, age.given, age.distance, age.drifted) == ("34", "I am 27 and live by the sea", 1.0, True)
    assert found[0].label == "drifted"


def test_drift_from_the_first_opinion_is_measured_without_a_model() -> None:  # PE-11
    who = persona(beliefs=beliefs_from({"levy": (-0.15, 0.0)}), trust={"Post": 1.0})
    events, state = lived(40, who, PLAIN, rules(probe_every=40, probe_ask=ASKS, drift_above=0.1, rate=1.0))
    [opinion] = [read_payload(event.payload) for event in events if event.kind == "probed"]
    assert opinion.expected == "-0.15"
    assert opinion.distance == abs(float(opinion.given) + 0.15) / 2
    assert opinion.drifted
    assert float(opinion.given) == round(state.belief("levy").stance, 2)


def test_probing_and_interviewing_leave_the_states_bytes() -> None:  # PE-1 PE-11
    _, state = lived(7, WHO, RULED, BY)
    before = state.to_bytes()
    for _ in range(2):
        probe(WHO, state, BY, RULED)
        assert interview(WHO, state, "What is your home?", RULED) == "near the old pool"
    assert state.to_bytes() == before


def test_turns_with_and_without_probes_give_the_same_memories() -> None:  # PE-11
    _, plain = lived(11, WHO, RULED, rules())
    _, probed = lived(11, WHO, RULED, BY)
    assert [one.text for one in plain.memories] == [one.text for one in probed.memories]
    assert plain.beliefs == probed.beliefs
    assert plain.counters == probed.counters


def test_a_distance_of_just_the_limit_is_no_drift() -> None:  # PE-11
    who = persona(beliefs=beliefs_from({"levy": (-0.2, 0.5)}))
    at_the_limit = rules(probe_every=1, probe_ask=(Ask(topic="levy"),), drift_above=0.15)
    (found,) = probe(who, lived(1, who, PLAIN, at_the_limit)[1], at_the_limit, Ports(PLAIN.embed, Scripted("0.1")))
    assert abs(found.distance - 0.15) < 1e-9  # 0.15000000000000002 in binary fractions
    assert not found.drifted


def test_no_answer_is_said_and_is_neither_drift_nor_character() -> None:  # PE-11
    events, _ = lived(5, WHO, Ports(PLAIN.embed, Scripted(None)), BY)
    probed = [event for event in events if event.kind == "probed"]
    for event in probed:
        found = read_payload(event.payload)
        assert (found.given, found.answered, found.drifted) == ("(no answer: the far side is asleep)", False, False)
    assert {event.label for event in probed} == {"unanswered"}


@pytest.mark.parametrize(
    ("answer", "stance"),
    [
        ("0.4", 0.4),
        ("+0.40", 0.4),
        ("−0.4", -0.4),
        (".5", 0.5),
        ("0.4.", 0.4),
        ("-1", -1.0),
        ("-1, definitely -1", -1.0),
        ("On a scale from -1 to 1, 0.4", 0.4),
        ("0.4 (on a scale of -1 to +1)", 0.4),
        ("From -1 (against) to 1 (for) I am at -0.2", -0.2),
        ("I am 27, and at 0.3", 0.3),
        ("85", None),
        ("85%", None),
        ("v1", None),
        ("1e5", None),
        ("I would rather not say", None),
        ("", None),
        ("7" * 100_000, None),
    ],
)
def test_a_stance_is_read_out_of_words_and_never_guessed(answer: str, stance: float | None) -> None:  # PE-11
    assert read_stance(answer) == stance


def test_an_opinion_without_a_number_is_no_drift() -> None:  # PE-11
    events, _ = lived(5, WHO, Ports(PLAIN.embed, Scripted("I would rather not say")), BY)
    opinion = [read_payload(event.payload) for event in events if event.kind == "probed"][-1]
    assert (opinion.given, opinion.answered, opinion.drifted) == ("I would rather not say", False, False)


def test_a_trace_from_before_answers_were_measured_stays_readable() -> None:  # PE-6 PE-11
    older = canonical(["probed", "age", "What is your age?", "34", "27", 1.0, True])
    assert label(read_payload(older)) == "drifted"
