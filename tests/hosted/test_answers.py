import asyncio
import json
from pathlib import Path

import pytest

from agentlab.hosted.model_adapters import Models, open_model
from agentlab.hosted.model_answers import AnswersModel

DATA = Path(__file__).parents[1] / "data" / "responses"


def ask(model, times):
    async def run():
        return [await model.complete("prompt", timeout=1) for _ in range(times)]

    return asyncio.run(run())


def test_each_line_is_the_next_completion_with_its_channels_and_then_from_the_top(tmp_path):
    # HA-5
    path = tmp_path / "answers.jsonl"
    lines = [
        {"text": "one\ud83e", "reasoning_channel": "thoughts", "model": "m-1", "unknown": 3},
        {"text": "", "tool_call": {"name": "raise_to", "args": {"amount": 7}}},
    ]
    path.write_text("\n\n".join(json.dumps(line) for line in lines))
    first, second, third = ask(open_model(f"answers:{path}"), 3)
    assert (first.text, first.reasoning, first.model, first.tool_call) == ("one\ud83e", "thoughts", "m-1", None)
    assert second.tool_call == {"name": "raise_to", "args": {"amount": 7}}
    assert third == first


def test_an_answer_by_tool_call_is_recorded_with_the_call_below_its_text(tmp_path):
    # CAP-1
    path = tmp_path / "answers.jsonl"
    call = {"name": "fold", "args": {}}
    path.write_text("\n".join(json.dumps({"text": text, "tool_call": call}) for text in ("", "I fold.")))
    bare, beside = ask(AnswersModel(str(path)), 2)
    assert bare.said == '{"tool_call": {"name": "fold", "args": {}}}'
    assert beside.said == 'I fold.\n{"tool_call": {"name": "fold", "args": {}}}'


@pytest.mark.parametrize("name", ["agent_poker", "live_poker_bench", "llm_poker_arena"])
def test_every_real_answer_is_served(name):
    # HA-5
    path = DATA / f"{name}.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").strip().split("\n")]
    served = ask(AnswersModel(str(path)), len(lines))
    assert [(one.text, one.reasoning, one.tool_call) for one in served] == [
        (line["text"], line.get("reasoning_channel"), line.get("tool_call")) for line in lines
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "no answers"),
        (b'{"text": 1}', "line 1"),
        (b'{"text": "a"}\nnope', "line 2"),
        (b"\xff\xfe", "line 1"),
        (b"[]", "line 1"),
    ],
)
def test_a_bad_file_is_refused_in_one_line_that_names_it(tmp_path, content, complaint):
    # SF-4
    path = tmp_path / "answers.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=complaint) as refused:
        AnswersModel(str(path))
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("spec", ["", "nobody", "openai:", "answers:", "answers:/no/such/file", "openai:gpt"])
def test_a_model_that_is_none_is_refused_in_one_line(spec):
    # SF-4
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        open_model(spec)


def test_a_version_that_names_no_model_costs_its_own_agent_alone():
    # HA-5
    models = Models()
    assert models.get("nobody").name == "nobody"
    assert models.get("house").name == "house-1"
