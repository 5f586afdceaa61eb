"""A study is validated as a whole, and each refusal names its place in one line."""

import json
import time
from pathlib import Path

import msgspec
import pytest

from agentlab.persona.study import read_study, study_from
from agentlab.persona.values import Invalid, canonical, sha256

from .making import DATA, crowd, study, written

ROOT = Path(__file__).parent.parent.parent
FIRST = ROOT / "agentlab" / "persona" / "studies" / "first.yaml"


def _refused(tmp_path: Path, content) -> str:
    path = written(tmp_path, content)
    with pytest.raises(Invalid) as refusal:
        read_study(path)
    message = str(refusal.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(f"{path}: ")


def test_the_study_that_ships_is_valid_and_comes_back_from_its_bytes() -> None:  # PE-4
    first = read_study(FIRST)
    assert study_from(first.to_bytes()) == first
    assert sum(one.calls for one in first.personas) == first.budget == 18


def test_yaml_and_json_of_one_content_are_one_study(tmp_path) -> None:  # PE-4
    json_file = written(tmp_path, study())
    yaml_file = tmp_path / "study.yaml"
    yaml_file.write_text(
        """
stimuli:
- {text: The levy passes committee, source: Post, social_proof: 80, stances: {levy: 0.8}}
- {text: The levy would cost 90 a year, social_proof: 40, stances: {levy: -0.5}}
- {text: The old pool leaks, stances: {levy: 0.3}}
personas:
- {id: ada, name: Ada, profile: {age: 34}, beliefs: {levy: 0.4}}
- {id: bo, name: Bo, profile: {age: 58}, beliefs: {levy: {stance: -0.4, confidence: 0.5}}}
topics: [levy]
seed: 7
name: Levy
tau: 20
"""
    )
    assert read_study(json_file).sha256 == read_study(yaml_file).sha256


def test_another_seed_is_another_study(tmp_path) -> None:  # PE-4
    assert read_study(written(tmp_path, study())).sha256 != read_study(written(tmp_path, study(seed=8))).sha256


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": None}, "`name` is missing"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name: must be text in one line, without control characters"),
        ({"personas": None}, "personas"),
        ({"personas": []}, "personas: at least one"),
        ({"stimuli": []}, "stimuli: at least one"),
        ({"speed": 3}, "at the top level: unknown field `speed`"),
        ({"schedule": {"trns": 3}}, "schedule: unknown field `trns`"),
        ({"personas": [{"id": "ada", "belefs": {}}]}, "personas[0] (ada): unknown field `belefs`"),
        ({"stimuli": [{"text": "a"}, {"text": "b", "txt": "c"}]}, "stimuli[1]: unknown field `txt`"),
        ({"seed": "7"}, "seed: must be a whole number, not text"),
        ({"seed": 1.5}, "seed"),
        ({"cap": 1}, "cap: must be a whole number, 2 or more"),
        ({"k": -1}, "k: must be a whole number, 0 or more"),
        ({"tau": 0}, "tau: must be a number, above 0"),
        ({"schedule": {"turns": 0}}, "schedule.turns"),
        ({"schedule": {"order": "reverse"}}, "schedule.order: 'reverse' is none of the words that it may be"),
        ({"schedule": {"turns": "many"}}, "schedule.turns: must be a whole number or null, not text"),
        ({"topics": ["levy", "levy"]}, "topics: levy is there twice"),
        ({"actions": ["like"]}, "actions: at least two"),
        ({"actions": ["like", "adore"]}, "actions[1]: 'adore'"),
        ({"actions": ["like", {"name": "adore", "valence": 3, "effort": 0.1}]}, "actions[1]"),
        ({"actions": ["like", {"name": "adore"}]}, "actions[1]"),
        ({"tier_b": {"budget": -1}}, "tier_b.budget"),
        ({"probes": {"every": 2, "opinions": ["moon"]}}, "probes.opinions: 'moon'"),
        ({"personas": [{"id": "ada"}, {"id": "ada"}]}, "personas: ada is there twice"),
        ({"personas": [{"id": 7}]}, "personas[0].id: must be text, not a whole number"),
        ({"personas": [{"id": "a b"}]}, "personas[0].id (a b)"),
        ({"personas": [{"id": "ada"}, {"id": "bo", "beliefs": {"levy": 2}}]}, "personas[1].beliefs[levy] (bo)"),
        ({"personas": [{"id": "ada", "beliefs": {"moon": 0.1}}]}, "personas[0].beliefs: 'moon'"),
        ({"personas": [{"id": "ada", "beliefs": {"levy": True}}]}, "personas[0].beliefs[levy] (ada)"),
        ({"personas": [{"id": "ada", "memories": [{"text": "x", "time": 4}]}]}, "personas[0].memories[0].time (ada)"),
        ({"personas": [{"id": "ada", "memories": [{"text": "x", "importance": "0.7"}]}]}, "importance (ada)"),
        ({"personas": ["ada"]}, "personas[0]: must be a mapping, not text"),
        ({"personas": [{"load": "gone.jsonl"}]}, "gone.jsonl: No such file"),
        ({"personas": [{"load": "gone.jsonl", "format": "csv"}]}, "personas[0].format"),
        ({"stimuli": [{"text": ""}]}, "stimuli[0].text"),
        ({"stimuli": [{"text": "a", "id": "s"}, {"text": "b", "id": "s"}]}, "stimuli: s is there twice"),
        ({"stimuli": [{"text": "a", "stances": {"moon": 1}}]}, "stimuli[0].stances: 'moon'"),
        ({"stimuli": [{"text": "a", "position": 0}]}, "stimuli[0].position"),
        (
            {"first_beliefs": {"levy": {"field": "views", "values": {"Liberal": 2}}}},
            "first_beliefs[levy].values[Liberal]",
        ),
        ({"first_beliefs": {"moon": {"field": "views", "values": {}}}}, "first_beliefs: 'moon'"),
        ({"name": "Levy\n"}, "name"),
        ({"personas": [{"id": "ada\n"}]}, "personas[0].id (ada)"),
        ({"personas": [{"id": "x\ny"}]}, "personas[0].id (x y)"),
        ({"a\nb": 1}, "unknown field `a b`"),
        ({"x" * 10_000: 1}, "unknown field `xxx"),
        ({"personas": [{"id": "ada", "trust": {"Post": 0.5, "Circle": 7}}]}, "personas[0].trust[Circle] (ada)"),
        ({"personas": [{"id": "ada", "profile": {"a" * 101: 1}}]}, "personas[0].profile[aaa"),
        ({"personas": [{"id": "ada", "profile": {"age": None}}]}, "personas[0].profile[age] (ada)"),
        ({"personas": [{"id": "ada", "profile": {"age": 10**30}}]}, "personas[0].profile[age] (ada): not a number"),
        ({"personas": [{"id": "ada", "memories": [{"text": "x", "time": -1e300}]}]}, "personas[0].memories[0].time"),
        ({"stimuli": [{"text": "a", "stances": {"levy": 1.5}}]}, "stimuli[0].stances[levy]"),
        ({"stimuli": [{"text": "a", "social_proof": 10**30}]}, "stimuli[0].social_proof"),
        ({"seed": 10**30}, "seed"),
        ({"tau": 1e300}, "tau"),
        ({"temperature": 1e-300}, "temperature"),
        ({"schedule": {"step": 1e308}}, "schedule.step"),
        ({"actions": ["like", {"name": "like, share", "valence": 0, "effort": 0}]}, "actions[1]"),
        ({"actions": ["like", {"name": "", "valence": 0, "effort": 0}]}, "actions[1]"),
        ({"actions": ["like", {"name": "x" * 101, "valence": 0, "effort": 0}]}, "actions[1]"),
        ({"embedder": "x" * 300}, "embedder"),
        ({"tier_b": {"budget": 1, "model": "openai:a\0b"}}, "tier_b.model"),
        ({"probes": {"every": 2}}, "probes: neither fields nor opinions"),
        ({"probes": {"every": 2, "fields": ["aeg"]}}, "probes.fields: 'aeg' is in no persona's profile"),
        ({"probes": {"every": 2, "opinions": ["levy", "levy"]}}, "probes.opinions: levy is there twice"),
        ({"personas": [{"load": "a\0b"}]}, "not a path"),
    ],
)
def test_a_refusal_names_the_place(tmp_path, changes, said: str) -> None:  # SF-4
    assert said in _refused(tmp_path, study(**changes))


def test_personas_of_one_name_are_two_personas(tmp_path) -> None:  # PE-4
    people = [{"id": "a", "name": "Ada"}, {"id": "b", "name": "Ada"}]
    assert [one.name for one in read_study(written(tmp_path, study(personas=people))).personas] == ["Ada", "Ada"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: [", ":1: "),
        ("name: a\nname: b", ":2: the key 'name' is given twice"),
        ("name: a\nbeliefs: {1: 0.2}", "the key 1 must be text"),
        ("- a", "a study is a mapping"),
        ("", "a study is a mapping"),
        ("a: &a [*a]", ": "),
        ("name: !!python/object:os.system x", "could not determine a constructor"),
    ],
)
def test_yaml_that_cannot_be_meant_is_refused(tmp_path, text: str, said: str) -> None:  # PE-2 SF-4
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(Invalid) as refusal:
        read_study(path)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


YAML_12 = """
name: Levy
topics: [levy]
personas: [{id: ada, profile: {vote: no, zip: 01234, wakes: 12:30, born: 2001-02-03, age: 34, fit: true, tall: 1.7}}]
stimuli: [{text: "half \\ud83d of a pair", stances: {levy: 1e-1}}]
"""


def test_a_word_of_yaml_stays_the_word_that_it_is(tmp_path) -> None:  # PE-2
    path = tmp_path / "study.yaml"
    path.write_text(YAML_12)
    made = read_study(path)
    profile = made.personas[0].profile
    assert profile == {
        **{"vote": "no", "zip": "01234", "wakes": "12:30", "born": "2001-02-03"},
        **{"age": 34, "fit": True, "tall": 1.7},
    }
    assert made.stimuli[0].stances == {"levy": 0.1}


def test_half_a_pair_of_surrogates_is_spelled_out_in_yaml_and_json(tmp_path) -> None:  # PE-2
    path = tmp_path / "study.yaml"
    path.write_text(YAML_12)
    in_json = read_study(written(tmp_path, study(stimuli=[{"text": "half \ud83d of a pair, and 🙂"}])))
    assert read_study(path).stimuli[0].text == "half \\ud83d of a pair"
    assert in_json.stimuli[0].text == "half \\ud83d of a pair, and 🙂"
    assert study_from(in_json.to_bytes()) == in_json


def test_what_looks_like_nothing_yaml_can_be_is_refused_by_its_place(tmp_path) -> None:  # SF-4
    path = tmp_path / "study.yaml"
    for value in (".nan", ".inf", "1e999"):
        path.write_text(f"{YAML_12}tau: {value}\n")
        with pytest.raises(Invalid, match="tau: must be a number, "):
            read_study(path)


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_aliases_that_stand_for_a_billion_values_are_refused_at_once(tmp_path) -> None:  # SF-4 SF-6
    path = tmp_path / "study.yaml"
    path.write_text(LAUGHS)
    began = time.process_time()
    with pytest.raises(Invalid, match="more than"):
        read_study(path)
    assert time.process_time() - began < 2


def test_a_file_without_a_size_is_read_to_the_limit_and_no_further(tmp_path, monkeypatch) -> None:  # SF-6
    monkeypatch.setattr("agentlab.persona.loaders.reading.FILE_LIMIT", 1000)
    with pytest.raises(Invalid, match="larger than"):
        read_study(Path("/dev/zero"))


def test_a_study_keeps_its_name_though_the_engine_has_learnt_a_new_key(tmp_path) -> None:  # PE-5 PE-6
    made = read_study(written(tmp_path, study(schedule={"turns": 9, "order": "shuffled"})))
    other = canonical({**msgspec.msgpack.decode(made.to_bytes()), "key_of_another_version": 1})
    read = study_from(other)
    assert read.to_bytes() != other
    assert read.sha256 == sha256(other)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x80", b"\x91" * 100_000])
def test_bytes_that_are_no_study_are_refused(data: bytes) -> None:  # SF-4
    with pytest.raises(Invalid):
        study_from(data)


def test_probes_say_how_often_they_ask_a_model(tmp_path) -> None:  # PE-11
    probes = {"every": 4, "fields": ["age"], "opinions": ["levy"]}
    people = [{"id": "a", "profile": {"age": 3}}, {"id": "b"}]
    given = {"personas": people, "probes": probes, "schedule": {"turns": 9}}
    assert read_study(written(tmp_path, study(**given, tier_b={"budget": 1}))).probe_calls == 2 * 3
    assert read_study(written(tmp_path, study(**given))).probe_calls == 0


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe", b"{", b'{"a": 1, "a": 2}', b"[" * 100_000, b"1" * 10_000, b'{"tau": NaN}', b'{"tau": -Infinity}'],
)
def test_json_that_cannot_be_read_is_refused(tmp_path, data: bytes) -> None:  # SF-4
    path = tmp_path / "study.json"
    path.write_bytes(data)
    with pytest.raises(Invalid):
        read_study(path)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch) -> None:  # SF-6
    monkeypatch.setattr("agentlab.persona.loaders.reading.FILE_LIMIT", 10)
    with pytest.raises(Invalid, match="larger than"):
        read_study(written(tmp_path, study()))


def test_a_folder_is_no_study(tmp_path) -> None:  # SF-4
    with pytest.raises(Invalid, match="directory"):
        read_study(tmp_path)


def test_the_budget_is_shared_out_to_the_last_call(tmp_path) -> None:  # PE-8
    made = read_study(written(tmp_path, crowd(4, 3, tier_b={"budget": 10})))
    assert [one.calls for one in made.personas] == [3, 3, 2, 2]


def test_what_is_shown_follows_the_list_again_and_again(tmp_path) -> None:  # PE-4
    made = read_study(written(tmp_path, study(schedule={"turns": 7, "step": 2})))
    shown = made.shown("ada", 1, 7)
    assert [one.stimulus for one in shown] == ["s1", "s2", "s3", "s1", "s2", "s3", "s1"]
    assert [one.time for one in shown] == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]


def test_a_shuffled_order_is_each_personas_own_and_always_the_same(tmp_path) -> None:  # PE-4
    stimuli = [{"text": f"News {n}"} for n in range(12)]
    made = read_study(written(tmp_path, study(stimuli=stimuli, schedule={"turns": 24, "order": "shuffled"})))
    ada, bo = ([one.stimulus for one in made.shown(id, 1, 24)] for id in ("ada", "bo"))
    assert ada != bo
    assert sorted(ada[:12]) == sorted(bo[12:]) == sorted(f"s{n}" for n in range(1, 13))
    assert made.shown("ada", 9, 15) == made.shown("ada", 1, 24)[8:15]


def test_first_beliefs_are_read_out_of_real_profiles(tmp_path) -> None:  # PE-4
    views = {"Liberal": 0.6, "Conservative": -0.6, "Moderate, middle of the road": 0.0}
    content = study(
        personas={"load": str(DATA / "gss" / "personas.jsonl"), "format": "gss"},
        stimuli={"load": str(DATA / "oasis" / "claims.jsonl"), "limit": 20, "source": "Feed", "stances": {"levy": 0.4}},
        first_beliefs={"levy": {"field": "political_views", "values": views, "confidence": 0.4}},
    )
    made = read_study(written(tmp_path, content))
    assert (len(made.personas), len(made.stimuli), made.turns) == (300, 20, 20)
    for one in made.personas:
        told = views.get(one.profile.get("political_views"))
        assert (one.beliefs[0].stance, one.beliefs[0].confidence) == ((told, 0.4) if told is not None else (0.0, 0.1))
    assert {one.source for one in made.stimuli} == {"Feed"}


def test_a_fault_in_a_loaded_file_names_its_line(tmp_path) -> None:  # SF-4
    (tmp_path / "people.jsonl").write_text(
        json.dumps({"id": "a"}) + "\n" + json.dumps({"id": "b", "beliefs": {"levy": 9}})
    )
    assert "personas[0]: people.jsonl:2.beliefs[levy] (b)" in _refused(
        tmp_path, study(personas={"load": "people.jsonl"})
    )
