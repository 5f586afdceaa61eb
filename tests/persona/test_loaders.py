"""Files that people already have become personas, with nothing lost without a word."""

import gzip
import json
from itertools import pairwise

import pytest

from agentlab.persona.loaders import load_personas, load_stimuli, smallville, tinytroupe
from agentlab.persona.study import read_study
from agentlab.persona.values import Invalid

from .making import DATA, study, written
from .making import smallville as unpacked


def _one(format: str, path) -> dict:
    return load_personas(format, path)[0][1]


def test_survey_profiles_load_with_every_field() -> None:
    found = load_personas("gss", DATA / "gss" / "personas.jsonl")
    first = json.loads((DATA / "gss" / "personas.jsonl").read_text().splitlines()[0])
    entry = found[0][1]
    assert len(found) == 300
    assert (entry["id"], entry["name"]) == ("gss-0000", "Gabriela Johnson")
    assert entry["profile"] == {k: v for k, v in first.items() if k not in ("id", "first_name", "last_name")}


def test_a_tinytroupe_agent_loads_with_its_statements_as_memories() -> None:
    entry = _one("tinytroupe", DATA / "tinytroupe" / "Lisa.agent.json")
    whole = json.loads((DATA / "tinytroupe" / "Lisa.agent.json").read_text())["persona"]
    assert entry["profile"]["occupation.title"] == whole["occupation"]["title"]
    assert entry["memories"] == whole["beliefs"] + whole["other_facts"]
    assert entry["profile"]["relationships"][0].startswith(whole["relationships"][0]["name"])


def test_a_folder_of_tinytroupe_agents_loads_in_order() -> None:
    names = [entry["name"] for _, entry in load_personas("tinytroupe", DATA / "tinytroupe")]
    assert names == sorted(names)
    assert len(names) == 2


def test_a_fragment_is_laid_over_an_agent() -> None:
    plain = _one("tinytroupe", DATA / "tinytroupe" / "Lisa.agent.json")
    fragment = DATA / "tinytroupe" / "travel_enthusiast.agent.fragment.json"
    over = tinytroupe.merged(DATA / "tinytroupe" / "Lisa.agent.json", [fragment])
    added = json.loads(fragment.read_text())["persona"]
    assert set(plain["profile"]["preferences.likes"]) < set(over["profile"]["preferences.likes"])
    assert set(added["preferences"]["likes"]) <= set(over["profile"]["preferences.likes"])
    assert over["id"] == plain["id"]


def test_what_is_no_agent_is_refused() -> None:  # SF-4
    with pytest.raises(Invalid, match="not a TinyTroupe TinyPerson file"):
        load_personas("tinytroupe", DATA / "tinytroupe" / "brazil.json")
    with pytest.raises(Invalid, match="no personas in it"):
        load_personas("tinytroupe", DATA / "oasis")


def test_a_real_memory_stream_loads_oldest_first_with_times_before_the_study(tmp_path) -> None:
    entry = _one("smallville", unpacked(tmp_path))
    times = [one["time"] for one in entry["memories"]]
    assert (len(times), entry["name"]) == (912, "Isabella Rodriguez")
    assert times == sorted(times)
    assert times[-1] == 0.0
    assert times[0] == -24 * 60
    assert {one["importance"] for one in entry["memories"]} <= {n / 10 for n in range(1, 11)}


def test_an_earlier_step_of_a_stream_is_the_beginning_of_a_later_one(tmp_path) -> None:  # PE-6
    loaded = []
    for step in ("12", "14", "15", "20"):
        folder = unpacked(tmp_path)
        (folder / "nodes.json").write_bytes(
            gzip.decompress((DATA / "smallville" / "maria" / f"nodes-{step}.json.gz").read_bytes())
        )
        [(_, entry)] = smallville.stream(folder)
        loaded.append([(one["text"], one["importance"]) for one in entry["memories"]])
    for earlier, later in pairwise(loaded):
        assert later[: len(earlier)] == earlier
    assert [len(one) for one in loaded] == [267, 363, 400, 600]


def test_a_stream_whose_times_name_zones_and_whose_do_not_is_one_stream(tmp_path) -> None:
    folder = unpacked(tmp_path)
    node = {"node_count": 1, "description": "x", "poignancy": 3}
    created = {"a": "2023-02-13 00:00:00", "b": "2023-02-13T00:01:00+00:00"}
    (folder / "nodes.json").write_text(json.dumps({name: {**node, "created": at} for name, at in created.items()}))
    assert [one["time"] for one in _one("smallville", folder)["memories"]] == [-1.0, 0.0]


def test_a_name_without_a_latin_letter_still_gives_an_id_of_its_own(tmp_path) -> None:  # PE-4
    people = [{"name": name, "profile": {}} for name in ("李明", "王芳", "Łucja")]
    (tmp_path / "town.jsonl").write_text("\n".join(map(json.dumps, people)))
    given = {"load": str(tmp_path / "town.jsonl"), "format": "town"}
    made = read_study(written(tmp_path, study(personas=given))).personas
    assert len({one.id for one in made}) == 3
    assert [one.name for one in made] == ["李明", "王芳", "Łucja"]


def test_a_profile_without_a_name_is_called_by_its_id(tmp_path) -> None:
    (tmp_path / "people.jsonl").write_text('{"id": "gss-1", "first_name": null, "age": 3}')
    assert _one("gss", tmp_path / "people.jsonl")["name"] == "gss-1"


@pytest.mark.parametrize("statements", ["I like tea", 7, {"a": 1}])
def test_statements_that_are_no_list_are_refused(tmp_path, statements) -> None:  # SF-4
    agent = {"type": "TinyPerson", "persona": {"name": "Lisa", "beliefs": statements}}
    (tmp_path / "lisa.agent.json").write_text(json.dumps(agent))
    with pytest.raises(Invalid, match="beliefs must be a list"):
        load_personas("tinytroupe", tmp_path / "lisa.agent.json")


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"created": "soon", "node_count": 1, "description": "x", "poignancy": 3},
        {"created": "2023-02-13", "node_count": 1, "description": "x", "poignancy": 10**400},
        7,
        None,
    ],
)
def test_a_stream_with_a_broken_memory_names_it(tmp_path, node) -> None:  # SF-4
    folder = unpacked(tmp_path)
    (folder / "nodes.json").write_text(json.dumps({"node_9": node}))
    with pytest.raises(Invalid, match="node_9 is not a memory"):
        load_personas("smallville", folder)


def test_residents_and_users_load() -> None:
    resident = _one("town", DATA / "smallville" / "town_of_25.jsonl")
    assert resident["id"] == "latoya-williams"
    assert len(resident["memories"]) > 5
    assert load_personas("oasis", DATA / "oasis" / "users.jsonl")[0][1]["name"] == "James Miller"


def test_claims_load_as_stimuli() -> None:
    found = load_stimuli(DATA / "oasis" / "claims.jsonl", 3)
    assert [entry["id"] for _, entry in found] == ["claim-001", "claim-002", "claim-016"]
    assert all(set(entry) == {"id", "text"} for _, entry in found)


@pytest.mark.parametrize(
    ("format", "path"),
    [
        ("gss", DATA / "gss" / "personas.jsonl"),
        ("oasis", DATA / "oasis" / "users.jsonl"),
        ("town", DATA / "smallville" / "town_of_25.jsonl"),
        ("tinytroupe", DATA / "tinytroupe"),
    ],
)
def test_every_loaded_persona_is_valid_in_a_study(tmp_path, format: str, path) -> None:
    made = read_study(written(tmp_path, study(personas={"load": str(path), "format": format})))
    assert len({one.id for one in made.personas}) == len(made.personas)


def test_our_own_format_loads_from_lines_and_from_a_list(tmp_path) -> None:
    people = [{"id": "a", "beliefs": {"levy": 0.2}}, {"id": "b"}]
    (tmp_path / "people.jsonl").write_text("\n".join(map(json.dumps, people)) + "\n\n")
    (tmp_path / "people.yaml").write_text("- {id: a, beliefs: {levy: 0.2}}\n- {id: b}\n")
    both = [
        read_study(written(tmp_path, study(personas=[{"load": name}]))).personas
        for name in ("people.jsonl", "people.yaml")
    ]
    assert both[0] == both[1]
    assert [one.id for one in both[0]] == ["a", "b"]
