import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agentlab.agents.models import Agent
from agentlab.hosted.playing import ONE_WISH_SECONDS
from agentlab.local import socket_path
from agentlab.private_redis import PrivateRedis
from capture.buffer import TurnBuffer
from tests.hosted.plays import children, counts, play, private_redis, rows, run_manage, start
from tests.openai_server import scripted_server

HANDS = Path(__file__).parents[1] / "data" / "hands"
LEDGER = "agent_inference_charges"
KEYS = {"hands", "turns", "fallbacks", "captured", "dropped", "failed", "envelopes", "clamped", "tables"}


@pytest.fixture(scope="session")
def migrated(tmp_path_factory):
    """A database with its tables made, to copy: making them takes longer than to play."""
    folder = tmp_path_factory.mktemp("migrated")
    run_manage(folder, "migrate", "--verbosity", "0")
    return folder / "agentlab.sqlite3"


@pytest.fixture
def state(tmp_path, migrated):
    """A state folder of the test's own."""
    shutil.copy(migrated, tmp_path / "agentlab.sqlite3")
    return tmp_path


def test_every_turn_is_captured_and_charged_and_a_second_play_overwrites_nothing(state):
    # HA-1, HA-10, CAP-8
    with private_redis(state) as client:
        first = counts(state, "--hands", "25", "--agents", "4", "--seed", "1")
        assert set(first) == KEYS
        assert (first["hands"], first["dropped"], first["failed"]) == (25, 0, 0)
        assert first["captured"] == first["turns"] - first["fallbacks"] == first["turns"] > 25
        assert first["envelopes"] == 4
        before = {key: client.dump(key) for key in client.scan_iter("turn:*")}
        second = counts(state, "--hands", "5", "--agents", "4", "--seed", "1")
        assert set(first["tables"]).isdisjoint(second["tables"])
        after = {key: client.dump(key) for key in client.scan_iter("turn:*")}
        assert len(after) == first["captured"] + second["captured"]
        assert all(after[key] == value for key, value in before.items())
        assert len(list(client.scan_iter("env:*"))) == 4
    facts = "count(*), sum(capture_outcome = 'recorded'), sum(change = 'clamp'), sum(change is null)"
    ledger = rows(state, f"select table_id, {facts} from {LEDGER} group by 1")
    played = ((play["tables"][0], play["turns"], play["turns"], play["clamped"], 0) for play in (first, second))
    assert sorted(ledger) == sorted(played)
    results = rows(state, "select table_id, hand_number, count(*), sum(net) from agent_hand_results group by 1, 2")
    assert len(results) == 30
    assert {(told, net) for _, _, told, net in results} == {(4, 0)}  # to everybody, and no chip is won that nobody lost
    assert first["clamped"] > 0  # the house model errs, and this seed has some of it


def test_the_same_seed_plays_the_same_hands_again(state):
    # HA-9
    with private_redis(state) as client:
        buffer = TurnBuffer(client)
        told = []
        for _ in range(2):
            table = counts(state, "--hands", "4", "--agents", "3", "--seed", "9")["tables"][0]
            told.append(
                [t.prompt.text for hand in range(1, 5) for t in buffer.hand_turns(table, hand, agent_id="rocky")]
            )
    assert told[0] == told[1] != []


def test_a_play_without_a_redis_has_one_of_its_own_for_its_life(state):
    # CAP-11
    assert counts(state, "--hands", "2", "--agents", "2")["captured"] > 0
    assert not socket_path(state).exists()


def test_hands_are_shared_out_between_tables(state):
    # HA-9
    counted = counts(state, "--hands", "5", "--agents", "2", "--tables", "2")
    assert counted["hands"] == 5
    assert len(set(counted["tables"])) == 2
    hands = rows(state, "select id, last_hand_number from hosted_tables")
    assert dict(hands) == dict(zip(counted["tables"], (3, 2), strict=True))


def test_a_table_that_is_named_plays_on_with_new_hand_numbers(state):
    # HA-9
    for _ in range(2):
        counts(state, "--hands", "3", "--agents", "2", "--table", "main")
    numbers = rows(state, f"select distinct hand_number from {LEDGER} where table_id = 'main' order by 1")
    assert [number for (number,) in numbers] == [1, 2, 3, 4, 5, 6]


def test_real_hands_are_dealt_once_each_and_what_cannot_be_is_named(state):
    # HA-9
    deals = state / "deals"
    deals.mkdir()
    for name in ("pluribus_100b_112.phh", "llmtour_os001_016.phh"):
        shutil.copy(HANDS / name, deals)
    (deals / "broken.phh").write_text("variant = 'NT'")
    (deals / "a\x1b[2Kok\u202e05\n.phh").write_text("variant = 'NT'")
    code, out, error = play(state, "--deal", str(deals), "--seed", "1", "--json")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["hands"] == 2
    missing = ".phh: starting_stacks is missing\n"  # and a name that would rewrite the line is seen for what it is
    assert error == f"not dealt: a␛[2KokRLO05␊{missing}not dealt: broken{missing}"


def test_real_answers_are_played_and_nothing_is_lost(state):
    # HA-6
    path = Path(__file__).parents[1] / "data" / "responses" / "live_poker_bench.jsonl"
    counted = counts(state, "--hands", "30", "--agents", "6", "--seed", "2", "--model", f"answers:{path}")
    assert counted["captured"] + counted["dropped"] + counted["failed"] == counted["turns"] - counted["fallbacks"]
    assert (counted["dropped"], counted["failed"]) == (0, 0)
    assert counted["captured"] > 0 < counted["fallbacks"]


def test_a_person_is_told_why_there_were_fallbacks(state):
    # HA-6
    (state / "answers").write_text('{"text": "I cannot decide."}\n')
    code, out, _ = play(state, "--hands", "1", "--agents", "2", "--model", f"answers:{state / 'answers'}")
    assert code == 0
    assert re.search(r"^fallback: \d+ × \S.+$", out, re.MULTILINE), out
    assert "no reason known" not in out


def wait_for_turns(state, count):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if rows(state, f"select count(*) from {LEDGER}")[0][0] >= count:
                return
        except Exception:  # not migrated yet
            pass
        time.sleep(0.05)
    raise AssertionError("nothing was played")


@pytest.mark.parametrize(("pace", "number"), [("fast", signal.SIGINT), ("watch", signal.SIGTERM)])
def test_it_ends_cleanly_when_it_is_asked_to(state, pace, number):
    # SF-5
    process = start(state, "--hands", "0", "--agents", "3", "--json", "--pace", pace, MIN_TURN_MS="50")
    wait_for_turns(state, 10)
    started = children(process.pid)
    assert len(started) == (2 if pace == "fast" else 5)  # the Redis, the table, and three agents where they are apart
    process.send_signal(number)
    out, error = process.communicate(timeout=30)
    seconds = 20 if number == signal.SIGINT else 4
    said = f"Ending after this hand, within {seconds} seconds; a second Ctrl-C ends it at once.\n"
    assert (process.returncode, error) == (128 + number, said)
    counted = json.loads(out.splitlines()[-1])
    assert counted["captured"] + counted["dropped"] + counted["failed"] == counted["turns"] - counted["fallbacks"]
    assert (counted["dropped"], counted["failed"], counted["fallbacks"]) == (0, 0, 0)
    charged = rows(state, f"select count(*), sum(is_fallback), sum(capture_outcome = 'pending') from {LEDGER}")
    assert charged == [(counted["turns"], counted["fallbacks"], 0)]
    if number == signal.SIGINT:  # for the other a busy machine may take too long
        assert rows(state, f"select count(distinct hand_number) from {LEDGER}") == [(counted["hands"],)]
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("pace", ["fast", "watch"])
def test_a_turn_that_is_being_decided_when_it_is_ended_at_once_leaves_no_trace(state, pace):
    # SF-5, CAP-2
    with scripted_server() as model:  # which never answers
        named = {"OPENAI_BASE_URL": model.url, "MIN_TURN_MS": "0"}
        process = start(state, "--agents", "2", "--pace", pace, "--model", "openai:x", "--json", **named)
        assert model.arrived.acquire(timeout=60)
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline().startswith("Ending after this hand, ")
        time.sleep(ONE_WISH_SECONDS + 0.2)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=19)  # and not after the time that the hand had
    counted = json.loads(out.splitlines()[-1])
    assert (process.returncode, error) == (130, "")
    assert (counted["turns"], counted["fallbacks"]) == (0, 0)
    assert rows(state, f"select count(*) from {LEDGER}") == [(0,)]


def test_a_service_manager_that_asks_every_process_to_end_has_the_hand_finished(state):
    # SF-5
    process = start(state, "--hands", "0", "--agents", "3", "--json", "--pace", "watch", MIN_TURN_MS="50")
    wait_for_turns(state, 10)
    _redis, *players = sorted(children(process.pid))
    for pid in [*players, process.pid]:
        os.kill(pid, signal.SIGTERM)
    out, error = process.communicate(timeout=30)
    assert (process.returncode, error.count("\n")) == (128 + signal.SIGTERM, 1)
    assert json.loads(out.splitlines()[-1])["fallbacks"] == 0
    assert rows(state, f"select count(*) from {LEDGER} where note <> ''") == [(0,)]  # nobody lost its memory


def test_what_a_killed_agent_had_counted_is_said_to_be_missing(state):
    # SF-5, HA-10
    process = start(state, "--hands", "0", "--agents", "2", "--json", "--pace", "watch", MIN_TURN_MS="50")
    wait_for_turns(state, 6)
    _redis, _table, agent, _other = sorted(children(process.pid))
    os.kill(agent, signal.SIGKILL)
    wait_for_turns(state, 12)
    process.send_signal(signal.SIGTERM)
    out, error = process.communicate(timeout=30)
    counted = json.loads(out.splitlines()[-1])
    assert "1 agent process ended without a word: the ledger has turns that these counts lack\n" in error
    assert counted["untold"] == 1
    assert rows(state, f"select count(*) > {counted['turns']} from {LEDGER}") == [(1,)]


def test_what_it_started_ends_when_it_is_killed(state):
    # SF-5
    process = start(state, "--hands", "0", "--agents", "2", "--pace", "watch", MIN_TURN_MS="50")
    wait_for_turns(state, 4)
    started = children(process.pid)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while alive := [pid for pid in started if Path(f"/proc/{pid}").exists() and not is_zombie(pid)]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.05)


def is_zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


BAD = [
    ("--agents", "1"),
    ("--agents", "10"),
    ("--hands", "-1"),
    ("--hands", "many"),
    ("--tables", "0"),
    ("--agent", "nobody", "--agent", "noone"),
    ("--agent", "rocky"),
    ("--agent", "rocky", "--agent", "rocky"),
    ("--agents", "3", "--agent", "rocky", "--agent", "nit"),
    ("--model", "nothing"),
    ("--model", "answers:/no/such/file"),
    ("--model", "openai:gpt"),
    ("--deal", "/no/such/folder"),
    ("--deal", str(HANDS), "--tables", "2"),
    ("--table", "main", "--tables", "2"),
    ("--pace", "slow"),
    ("--table", ""),
    ("--table", "x" * 201),
    ("--table", "\udcff"),
    ("--seed", "\udcff"),
    ("--agent", "\udcff"),
    ("--deal", ""),
    ("--model", ""),
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("arguments", BAD, ids=ascii)
def test_bad_input_is_refused_in_one_line(arguments, settings):
    # SF-4
    settings.OPENAI_API_KEY = settings.OPENAI_BASE_URL = ""
    with pytest.raises(CommandError, match=r"^[^\n]{1,200}$"):
        call_command("play", *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--agents", "3", "--agent", "rocky"), "--agents is how many of the house play; with --agent, "),
        (("--agent", "rocky", "--agent", "rocky"), "named twice: rocky; an agent has one seat at a table"),
    ],
)
def test_what_can_not_be_meant_together_is_refused_and_not_passed_over(arguments, said):
    # SF-4
    with pytest.raises(CommandError, match=f"^{said}"):
        call_command("play", *arguments)


@pytest.mark.django_db(transaction=True)
def test_an_agent_that_is_not_there_is_named():
    # SF-4
    with pytest.raises(CommandError, match=r"^no such agent: nobody$"):
        call_command("play", "--agent", "nobody")


@pytest.mark.django_db(transaction=True)
def test_where_people_have_accounts_the_house_takes_nobodys_name_and_no_redis_of_its_own(settings, django_user_model):
    # HA-11, SF-5
    settings.LOCAL = False
    oona = django_user_model.objects.create_user("oona", password="x")
    Agent.objects.create(id="rocky", name="Rocky", owner=oona)
    settings.AGENT_CAPTURE_REDIS_URL = PrivateRedis(settings.PRIVATE_REDIS_SOCKET).url
    with pytest.raises(CommandError, match=r"^AGENT_CAPTURE_REDIS_URL is not set"):
        call_command("play", "--agents", "2", "--hands", "1")
    made = Agent.objects.exclude(pk="rocky")
    assert {agent.owner.username for agent in made} == {"house"}
    assert len(made) == 2
    person = django_user_model.objects.get(username="house")
    person.set_password("somebody")
    person.save()
    with pytest.raises(CommandError, match=r"^the user house is a person"):
        call_command("play", "--agents", "2", "--hands", "1")


def test_a_file_of_thousands_of_hands_that_cannot_be_dealt_is_told_of_hand_by_hand(state):
    # HA-9, SF-4
    keys = [f"{number} {'long ' * 50}" for number in range(5000)] + ["one " * 400_000]
    (state / "other.phhs").write_text("".join(f"['{key}']\nvariant = 'FT'\n" for key in keys))
    code, _, error = play(state, "--deal", str(state / "other.phhs"))
    lines = error.splitlines()
    assert (code, len(lines), lines[-1]) == (1, 5002, "CommandError: no hand could be dealt")
    assert lines[7].startswith("not dealt: other.phhs#7 long long")
    assert lines[7].endswith("variant 'FT' is not no-limit hold'em")


def test_files_of_which_no_hand_can_be_dealt_are_no_success(state):
    # HA-9, SF-4
    (state / "broken.phh").write_text("variant = 'NT'")
    code, _, error = play(state, "--deal", str(state / "broken.phh"))
    assert code == 1
    assert error.splitlines() == [
        "not dealt: broken.phh: starting_stacks is missing",
        "CommandError: no hand could be dealt",
    ]


def test_bad_input_on_the_command_line_shows_no_traceback(state):
    # SF-4
    code, out, error = play(state, "--model", "nothing")
    assert (code, out) == (1, "")
    assert error == "CommandError: no such model: 'nothing' (house, openai:NAME or answers:FILE)\n"


def test_a_database_that_is_not_there_is_said_in_one_line(state):
    # SF-4
    code, out, error = play(state, SECRET_KEY="x", DATABASE_URL="postgresql://nobody@127.0.0.1:9/none")
    assert (code, out) == (1, "")
    assert error.splitlines()[-1].startswith("CommandError: the database cannot be used: ")
    assert "Traceback" not in error
