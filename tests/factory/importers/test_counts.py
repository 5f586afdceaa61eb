"""What the importers count, held against counts that an independent script made of the same files."""

import json

import pytest

from factory.importers.found import NotSupportedError
from tests.factory.importers.reading import SESSIONS, read, read_one

ORACLE = json.loads((SESSIONS / "COUNTS.json").read_text())
PI = [name for name, counts in ORACLE.items() if counts["kind"] == "pi session"]
STREAMS = [name for name, counts in ORACLE.items() if counts["kind"] == "pi event stream"]
CLAUDE = [name for name, counts in ORACLE.items() if counts["kind"] == "claude code"]


@pytest.mark.parametrize("name", PI)
def test_a_pi_session_has_the_turns_calls_and_tokens_that_it_has(name: str) -> None:  # IM-1
    counts, found = ORACLE[name], read_one(SESSIONS / name)
    assert found.session.session_id == counts["session_id"]
    assert found.session.counts.records == counts["records"] + counts.get("bad_lines", 0)
    assert found.session.counts.damaged == counts.get("bad_lines", 0)
    assert len(found.attempts) == counts["msg_user"]
    calls = [call for attempt in found.attempts for call in attempt.tool_calls if "typed by the user" not in call.name]
    assert len(calls) == counts["tool_calls"]
    assert sum(attempt.input_tokens or 0 for attempt in found.attempts) == counts["usage_input"]
    assert sum(attempt.output_tokens or 0 for attempt in found.attempts) == counts["usage_output"]
    images = [
        item for attempt in found.attempts for item in attempt.inputs if item.delivery_mode == "provider_attachment"
    ]
    assert len(images) == counts["images"]


@pytest.mark.parametrize("name", STREAMS)
def test_a_pi_event_stream_is_one_turn_whatever_it_repeats(name: str) -> None:  # IM-1
    counts, found = ORACLE[name], read_one(SESSIONS / name)
    assert found.session.format == "pi event stream"
    assert found.session.session_id == counts["session_id"]
    assert found.session.counts.records == counts["records"]
    assert [attempt.state for attempt in found.attempts] == ["succeeded"]


@pytest.mark.parametrize("name", CLAUDE)
def test_a_claude_code_session_has_the_rows_calls_and_tokens_that_it_has(name: str) -> None:  # IM-1
    counts, found = ORACLE[name], read_one(SESSIONS / name)
    assert found.session.session_id in counts["session_ids"]
    assert found.session.counts.records == counts["rows"] + counts.get("non_object_rows", 0)
    assert found.session.counts.damaged == counts.get("non_object_rows", 0)
    calls = [
        call for attempt in found.attempts for call in attempt.tool_calls if "that is not in the file" not in call.name
    ]
    assert len(calls) == counts["tool_use"]
    assert sum(attempt.output_tokens or 0 for attempt in found.attempts) == counts["output_tokens_max_per_message"]


def test_a_web_export_is_read_as_the_same_rows() -> None:  # IM-1
    found = read_one(SESSIONS / "claude-code/web-session.json")
    assert found.session.counts.records == ORACLE["claude-code/web-session.json"]["loglines"]
    assert found.attempts[0].user_prompt == "Create a simple Python function to add two numbers"


@pytest.mark.parametrize(
    "name",
    [
        f"inspect/{one}"
        for one in ("small-deflate.eval", "retries-zstd.eval", "message-pool.eval", "image-attachment.json")
    ],
)
def test_an_inspect_log_gives_a_try_for_each_sample_and_retry(name: str) -> None:  # IM-1
    counts, found = ORACLE[name], read_one(SESSIONS / name)
    assert len(found.attempts) == counts["samples"] + sum(counts["error_retries"])
    assert found.session.counts.damaged == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("llm/logs-0.19.db", "agent_attempts"),
        ("other/opencode-stream-head.jsonl", "neither"),
        ("COUNTS.json", "neither"),
        ("PROVENANCE.md", "neither"),
    ],
)
def test_a_foreign_file_is_plainly_not_supported(name: str, said: str) -> None:  # IM-1
    with pytest.raises(NotSupportedError, match="not supported") as refusal:
        read(SESSIONS / name)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)
