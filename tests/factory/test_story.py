"""What an agent said and did, in the order in which it happened."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from factory.models import AgentToolCall, FactoryRun
from factory.story import tell
from tests.factory.importers.reading import PI_HEADER, SESSIONS, pi_message, read, read_one, write_lines


@dataclass(frozen=True)
class Call:
    name: str
    reply_offset: int | None = None


def told(reply: str | None, *calls: Call, **options: object) -> list[str]:
    steps = tell(reply, [(call, call.reply_offset) for call in calls], **options)  # type: ignore[arg-type]
    return [
        words for step in steps for words in (step.said and str(step.said.html), step.call and step.call.name) if words
    ]


def test_words_stand_before_the_call_that_followed_them() -> None:  # FA-13
    reply = "Look first.\n\nNow mend.\n\nDone."
    assert told(reply, Call("read", 11), Call("ls", 11), Call("edit", 22)) == [
        *("Look first.", "read", "ls", "Now mend.", "edit", "Done."),
    ]


def test_without_a_recorded_order_nothing_is_put_between_the_calls() -> None:  # FA-13
    assert told("Look.\n\nDone.", Call("read"), Call("edit")) == ["read", "edit"]
    assert told(None, Call("read", 0)) == ["read"]
    assert told("Done.") == []


def test_a_page_of_calls_begins_and_ends_where_it_stands() -> None:  # FA-13
    reply = "One.\n\nTwo.\n\nThree."
    assert told(reply, Call("b", 10), since=4, to_the_end=False) == ["Two.", "b"]
    assert told(reply, Call("c", 10), since=10) == ["c", "Three."]


def test_an_offset_that_cannot_be_moves_nothing_out_of_order() -> None:  # SF-4
    assert told("abc", Call("x", 2), Call("y", 1), Call("z", 99)) == ["ab", "x", "y", "c", "z"]


def test_words_between_calls_are_escaped_and_long_ones_are_cut_and_say_so() -> None:  # AI-7
    [step, _] = tell("<b>" + "é" * 5_000 + "\n\nDone.", [("x", 5_003)])
    assert step.said is not None
    assert step.said.cut and str(step.said.html).startswith("&lt;b&gt;é")


def test_every_offset_of_a_session_is_the_end_of_something_said() -> None:  # IM-1
    found = 0
    for path in [*SESSIONS.glob("claude-code/*.json*"), *SESSIONS.glob("pi/**/*.jsonl")]:
        for session in read(path):
            for attempt in session.attempts:
                reply, offsets = attempt.reply or "", [call.reply_offset for call in attempt.tool_calls]
                known = [offset for offset in offsets if offset is not None]
                assert known == sorted(known)
                for offset in known:
                    assert offset in {0, len(reply)} or reply[offset] == "\n", path
                    found += 1
    assert found > 20


def test_within_one_message_of_pi_a_call_stands_between_its_words(tmp_path: Path) -> None:  # IM-1
    message = pi_message("2", "1", "assistant", "First.")
    call = {"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}
    message["message"]["content"] += [call, {"type": "text", "text": "Then."}, call | {"id": "d"}]  # type: ignore[index]
    earlier = pi_message("1b", "1", "assistant", "Hello.")
    message["parentId"] = "1b"
    path = write_lines(tmp_path / "s.jsonl", PI_HEADER, pi_message("1", None, "user"), earlier, message)
    [attempt] = read_one(path).attempts
    assert attempt.reply == "Hello.\n\nFirst.\nThen."
    assert told(attempt.reply, *(Call(call.name, call.reply_offset) for call in attempt.tool_calls)) == [
        *("Hello.\n\nFirst.", "bash", "Then.", "bash"),
    ]


@pytest.fixture
def owner(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("ada", password="x"))
    return client


def bring(path: Path) -> FactoryRun:
    call_command("factory", "import", str(path), "--owner", "ada", "--json")
    return FactoryRun.objects.latest("pk")


def test_the_page_of_an_imported_attempt_tells_words_and_calls_in_order(owner: Client) -> None:  # FA-13
    run = bring(SESSIONS / "claude-code/tool-heavy.jsonl")
    first = run.attempts.get(number=1)
    html = owner.get(f"/factory/runs/{run.pk}/attempts/1").content.decode()
    story = html[html.index("Tool use</h2>") :]
    assert "What the agent said and did, in order." in story
    assert first.reply
    places = [story.index(words) for words in ("mix phx.server", first.reply, "tail -5 ")]
    assert places == sorted(places)
    reply = html[html.index("<h2>Reply</h2>") - 120 : html.index("<h2>Reply</h2>")]
    assert "<details>" in reply, "its words stand below, so its own block is closed"


def test_bringing_a_session_again_adds_the_order_that_an_older_import_did_not_keep(owner: Client) -> None:  # IM-2
    path = SESSIONS / "claude-code/tool-heavy.jsonl"
    bring(path)
    known = list(AgentToolCall.objects.order_by("attempt", "seq").values_list("reply_offset", flat=True))
    AgentToolCall.objects.update(reply_offset=None)
    bring(path)
    assert list(AgentToolCall.objects.order_by("attempt", "seq").values_list("reply_offset", flat=True)) == known
    assert any(known)


def test_the_second_page_of_a_long_attempt_goes_on_where_the_first_ended(owner: Client, tmp_path: Path) -> None:
    # FA-13 PF-4
    records = [PI_HEADER, pi_message("0", None, "user")]
    for n in range(1, 121):
        record = pi_message(str(n), str(n - 1), "assistant", f"Step {n:03}.")
        call = {"type": "toolCall", "id": f"c{n}", "name": "bash", "arguments": {"command": f"make {n:03}"}}
        record["message"]["content"].append(call)  # type: ignore[index]
        records.append(json.loads(json.dumps(record)))
    run = bring(write_lines(tmp_path / "long.jsonl", *records))
    base = f"/factory/runs/{run.pk}/attempts/1"
    first = owner.get(base).content.decode().partition("Tool use</h2>")[2]
    second = owner.get(f"{base}?page=2").content.decode().partition("Tool use</h2>")[2]
    assert ("Step 100." in first, "Step 101." in first) == (True, False)
    assert ("Step 100." in second, "Step 101." in second, "Step 120." in second) == (False, True, True)


def test_what_an_agent_said_last_stands_before_what_it_did_on_the_way(owner: Client, tmp_path: Path) -> None:  # FA-13
    call = {"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}
    searching = pi_message("2", "1", "assistant", "Let me search.")
    searching["message"]["content"] += [call] * 150  # type: ignore[index]
    found = pi_message("3", "2", "assistant", "There are 18 TODOs.")
    path = write_lines(tmp_path / "s.jsonl", PI_HEADER, pi_message("1", None, "user"), searching, found)
    page = f"/factory/runs/{bring(path).pk}/attempts/1"
    head = owner.get(page).content.decode().partition("Tool use</h2>")[0]
    assert '<a href="#last-words">What it said last</a> There are 18 TODOs.</p>' in head
    head = head.partition('id="last-words">')[2]
    assert head.index("There are 18 TODOs.") < head.index("<h2>Reply</h2>")
    ended_busy = write_lines(tmp_path / "t.jsonl", PI_HEADER | {"id": "t"}, pi_message("1", None, "user"), searching)
    assert "What it said last" not in owner.get(f"/factory/runs/{bring(ended_busy).pk}/attempts/1").content.decode()
