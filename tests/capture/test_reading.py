"""Reading a hand: three stores, three lifetimes, one answer."""

import threading
from functools import partial

import pytest
import redis
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agentlab.agents.models import InferenceCharge
from capture.models import AgentCallRecord
from capture.pinning import PinResult, pin
from capture.prompt import Prompt
from capture.reading import Hand, TurnView, read_hand, read_hand_all
from capture.recent import recent_hands
from tests.capture.making import HAND, TABLE, charge, charge_all, play, take_redis_away, turn, write
from tests.capture.test_buffer import put_another_kind

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("capture_redis")]


def keep(agent: str = "rocky", hand: int = HAND) -> PinResult:
    return pin(TABLE, hand, agent_id=agent, actor=None)


def places(hand: Hand) -> list[tuple[int, str]]:
    return [(view.action_index, view.agent_id) for view in hand.turns]


class Watched:
    """The commands that a Redis gets while the block runs, keys and all, as its own MONITOR tells them. Other test
    processes may use the same server, each with a database number of its own: theirs are not watched."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.commands: list[str] = []

    def __enter__(self) -> "Watched":
        self.monitor = self.client.monitor()
        self.monitor.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        number = self.client.connection_pool.connection_kwargs.get("db") or 0
        self.client.echo("end of the watch")
        for command in self.monitor.listen():
            if command["db"] != number:
                continue
            if "end of the watch" in command["command"]:
                break
            self.commands.append(command["command"])
        self.monitor.__exit__(None, None, None)

    @property
    def keys(self) -> set[str]:
        return {word for command in self.commands for word in command.split()[1:] if ":" in word}


def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many commands each round trip to Redis carried, from now on."""
    from redis.client import Pipeline

    made: list[int] = []
    execute = Pipeline.execute

    def counted(self: Pipeline, raise_on_error: bool = True) -> list[object]:
        made.append(len(self.command_stack))
        return execute(self, raise_on_error)

    monkeypatch.setattr(Pipeline, "execute", counted)
    return made


def test_an_owner_reads_their_own_turns_whole_and_in_action_order() -> None:  # RD-1
    mine = [turn("rocky", index) for index in (10, 2, 7)]
    play([*mine, turn("nit", 3)])
    hand = read_hand(TABLE, HAND, agent_id="rocky")
    assert places(hand) == [(2, "rocky"), (7, "rocky"), (10, "rocky")]
    assert [view.turn for view in hand.turns] == sorted(mine, key=lambda one: one.key)
    assert hand.buffer_answered


def test_an_owners_read_touches_no_key_of_a_rival_and_never_the_list_of_agents(capture_redis: redis.Redis) -> None:
    # RD-3
    play([turn(agent, index) for index, agent in enumerate(["rocky", "nit", "rocky", "bluffy"])])
    with Watched(capture_redis) as watched:
        read_hand(TABLE, HAND, agent_id="rocky")
    envelope = turn("rocky").prompt.envelope_hash
    hand = f"{{{TABLE}:{HAND}}}"
    assert watched.keys == {f"hand:{hand}:rocky", f"turn:{hand}:rocky:0", f"turn:{hand}:rocky:2", f"env:{envelope}"}


def test_an_owners_read_asks_the_database_for_their_rows_alone() -> None:  # RD-3
    play([turn("rocky", 0), turn("nit", 1)])
    keep("nit")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert places(read_hand(TABLE, HAND, agent_id="rocky")) == [(0, "rocky")]
    assert all("'rocky'" in query["sql"] for query in queries)


def test_the_reading_function_cannot_be_called_without_an_agent() -> None:  # RD-3, E-AFT-4
    with pytest.raises(TypeError):
        read_hand(TABLE, HAND)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="agent"):
        read_hand(TABLE, HAND, agent_id="")


@pytest.mark.parametrize("kept", [False, True])
def test_a_hand_costs_the_same_however_many_turns_and_agents_it_has(  # PF-4
    monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    costs = set()
    made = trips(monkeypatch)
    for hand, (agents, turns) in enumerate([(2, 2), (2, 200), (9, 9), (9, 200)], start=100):
        names = [f"agent-{number}" for number in range(agents)]
        play([turn(names[index % agents], index, hand=hand) for index in range(turns)])
        if kept:
            for name in names:
                keep(name, hand)
        reads = {
            "owner": partial(read_hand, TABLE, hand, agent_id=names[0]),
            "operator": partial(read_hand_all, TABLE, hand),
        }
        for reader, read in reads.items():
            made.clear()
            with CaptureQueriesContext(connection) as queries:
                read()
            costs.add((reader, len(made), len(queries)))
    assert len(costs) == 2  # one cost for the owner, one for the operator, who also asks who played


def test_the_operator_reads_everybody_interleaved() -> None:  # RD-2
    play([turn("rocky", 0), turn("nit", 1), turn("rocky", 2), turn("nit", 2)])
    assert places(read_hand_all(TABLE, HAND)) == [(0, "rocky"), (1, "nit"), (2, "nit"), (2, "rocky")]


def test_a_kept_turn_is_read_when_every_key_of_the_hand_is_gone(capture_redis: redis.Redis) -> None:  # RD-2, E-AFT-7
    play([turn("rocky", 0), turn("nit", 1)])
    keep()
    InferenceCharge.objects.all().delete()
    capture_redis.flushdb()
    hand = read_hand_all(TABLE, HAND)
    assert [view.turn for view in hand.turns] == [turn("rocky", 0)]
    assert hand.turns[0].kept


def test_kept_turns_are_read_when_only_the_list_of_agents_is_gone(capture_redis: redis.Redis) -> None:  # RD-2
    play([turn("rocky", 0), turn("nit", 1)])
    capture_redis.delete(f"agents:{{{TABLE}:{HAND}}}")
    assert [view.turn for view in read_hand_all(TABLE, HAND).turns] == [turn("rocky", 0), turn("nit", 1)]


def test_buffer_and_kept_rows_are_united_turn_by_turn(capture_redis: redis.Redis) -> None:  # RD-1
    play([turn("rocky", 0), turn("rocky", 1)])
    keep()
    play([turn("rocky", 2)])
    capture_redis.delete(f"turn:{{{TABLE}:{HAND}}}:rocky:0")
    hand = read_hand(TABLE, HAND, agent_id="rocky")
    assert [(view.action_index, view.kept) for view in hand.turns] == [(0, True), (1, True), (2, False)]
    assert [view.turn for view in hand.turns] == [turn("rocky", index) for index in range(3)]


def test_the_buffers_record_wins_where_it_is_whole() -> None:  # RD-1
    write(turn("rocky", 0, response="first"))
    keep()
    write(turn("rocky", 0, response="second"))
    assert response_of(read_hand(TABLE, HAND, agent_id="rocky")) == "second"


@pytest.mark.parametrize("damage", ["envelope gone", "envelope changed", "record cut"])
def test_the_kept_record_wins_where_the_buffers_is_not_whole(capture_redis: redis.Redis, damage: str) -> None:  # RD-1
    write(turn("rocky", 0, response="first"))
    keep()
    write(turn("rocky", 0, response="second"))
    spoil(capture_redis, damage)
    hand = read_hand(TABLE, HAND, agent_id="rocky")
    assert response_of(hand) == "first"
    assert hand.turns[0].damaged == ""


@pytest.mark.parametrize("damage", ["envelope gone", "envelope changed", "record cut"])
def test_a_record_that_cannot_be_rebuilt_is_said_not_shown(capture_redis: redis.Redis, damage: str) -> None:  # CAP-9
    play([turn("rocky", 0), turn("rocky", 1)])
    spoil(capture_redis, damage)
    first = read_hand(TABLE, HAND, agent_id="rocky").turns[0]
    assert first.turn is None
    assert first.damaged


def spoil(client: redis.Redis, damage: str) -> None:
    record = f"turn:{{{TABLE}:{HAND}}}:rocky:0"
    envelope = f"env:{turn('rocky').prompt.envelope_hash}"
    if damage == "envelope gone":
        client.delete(envelope)
    elif damage == "envelope changed":
        client.set(envelope, b"another envelope")
    else:
        client.set(record, client.get(record)[:-9])


def response_of(hand: Hand) -> str:
    return hand.turns[0].turn.response


def test_a_kept_row_with_a_changed_envelope_is_said_not_shown(capture_redis: redis.Redis) -> None:  # CAP-9
    write(turn("rocky", 0))
    keep()
    capture_redis.flushdb()
    AgentCallRecord.objects.update(envelope=b"another envelope")
    (view,) = read_hand(TABLE, HAND, agent_id="rocky").turns
    assert (view.turn, view.kept) == (None, True)
    assert "hash" in view.damaged


def test_fallbacks_and_losses_of_the_ledger_are_listed_without_the_four_things() -> None:  # RD-1, CAP-2
    play([turn("rocky", 0)])
    charge_all(
        charge("rocky", 1, is_fallback=True, fallback_reason="timed out"),
        charge("rocky", 2, capture_outcome="dropped", capture_reason="buffer full"),
    )
    _, fallback, lost = read_hand(TABLE, HAND, agent_id="rocky").turns
    assert (fallback.turn, fallback.is_fallback, fallback.fallback_reason) == (None, True, "timed out")
    assert (lost.turn, lost.capture_outcome, lost.capture_reason) == (None, "dropped", "buffer full")


def test_a_turn_from_before_the_version_tag_takes_its_version_from_its_own_ledger_row() -> None:  # PIN-5
    write(*(turn(agent, 3, agent_version_id=None) for agent in ("rocky", "nit", "bluffy")))
    charge_all(charge("rocky", 3, agent_version_id="rocky-v1"), charge("nit", 3, agent_version_id=None))
    versions = {view.agent_id: view.agent_version_id for view in read_hand_all(TABLE, HAND).turns}
    assert versions == {"rocky": "rocky-v1", "nit": None, "bluffy": None}


def test_not_captured_and_captured_empty_stay_apart_in_both_stores(capture_redis: redis.Redis) -> None:  # CAP-7
    write(turn("rocky", 0, knowledge=None, decision=None, reasoning=None), turn("rocky", 1, decision=[], reasoning=""))
    keep()
    for _ in ("from the buffer", "from the durable table"):
        absent, empty = (view.turn for view in read_hand(TABLE, HAND, agent_id="rocky").turns)
        assert (absent.knowledge, absent.decision, absent.reasoning) == (None, None, None)
        assert (empty.decision, empty.reasoning) == ([], "")
        capture_redis.flushdb()


@pytest.mark.parametrize("key", ["turn:{hand}:rocky:1", "env:{envelope}"])
def test_a_key_of_another_kind_costs_the_turns_that_need_it_and_no_others(
    capture_redis: redis.Redis, key: str
) -> None:  # CAP-9, RD-1, SF-5
    odd = turn("rocky", 1, prompt=Prompt("an envelope of its own", "x"))
    play([turn("rocky", 0), odd, turn("nit", 2)])
    put_another_kind(capture_redis, key.format(hand=f"{{{TABLE}:{HAND}}}", envelope=odd.prompt.envelope_hash))
    hand = read_hand_all(TABLE, HAND)
    assert hand.buffer_answered
    assert [view.turn for view in hand.turns] == [turn("rocky", 0), None, turn("nit", 2)]
    assert [bool(view.damaged) for view in hand.turns] == [False, True, False]


@pytest.mark.parametrize("key", ["hand:{}:rocky", "agents:{}"])
def test_turns_that_a_damaged_list_no_longer_names_are_found_by_the_ledger_and_it_is_said(
    capture_redis: redis.Redis, key: str
) -> None:  # RD-2, SF-5
    play([turn("rocky", 0), turn("nit", 1), turn("rocky", 2)])
    charge_all(charge("rocky", 3, is_fallback=True))
    assert read_hand_all(TABLE, HAND).lists_whole
    put_another_kind(capture_redis, key.format(f"{{{TABLE}:{HAND}}}"))
    hand = read_hand_all(TABLE, HAND)
    assert (hand.buffer_answered, hand.lists_whole) == (True, False)
    assert [view.turn for view in hand.turns] == [turn("rocky", 0), turn("nit", 1), turn("rocky", 2), None]


def test_what_became_of_a_choice_is_known_from_the_ledger_when_the_record_is_gone(capture_redis: redis.Redis) -> None:
    # RD-1, HA-10
    write(turn("rocky", 0, change="verb"))
    charge_all(*(charge("rocky", index, change=word) for index, word in enumerate(["verb", "clamp", "", None])))
    words = [view.change for view in read_hand(TABLE, HAND, agent_id="rocky").turns]
    assert words == ["verb", "clamp", None, None]


ODD_TEXTS = [
    "NUL \0 in the middle",
    "\ud83e alone",
    "\ud83d\ude00 two halves, not one character 😀",
    "\u202eRTL and $5 … $10 <script>alert(1)</script>",
    "lines\r\nthat\rend\nin many ways\r\n",
    "",
    "é" * 500_000,
]


@pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: text[:12].encode("unicode_escape").decode())
def test_any_text_is_read_back_exactly_from_both_stores(capture_redis: redis.Redis, text: str) -> None:  # CAP-9
    from capture.frozen import freeze

    odd = turn(
        "rocky",
        0,
        prompt=Prompt(text, text),
        response=text,
        reasoning=text,
        knowledge=freeze({"text": text, "nan": float("nan"), "big": 2**63, 1: "a key"}),
        decision=[{"text": text}],
        asked_amount=text,
    )
    write(odd)
    assert read_hand(TABLE, HAND, agent_id="rocky").turns[0].turn == odd
    keep()
    capture_redis.flushdb()
    assert read_hand(TABLE, HAND, agent_id="rocky").turns[0].turn == odd


def test_names_that_no_text_column_can_hold_are_kept_exactly(capture_redis: redis.Redis) -> None:  # CAP-9
    odd = turn("rocky", 0, model="a\0b\ud800" + "m" * 300, agent_version_id="v" * 300, routing="\0")
    write(odd)
    keep()
    capture_redis.flushdb()
    assert read_hand(TABLE, HAND, agent_id="rocky").turns[0].turn == odd


def test_a_hand_reads_its_kept_turns_and_says_so_when_redis_does_not_answer(settings) -> None:  # RD-2, VW-6
    play([turn("rocky", 0), turn("nit", 1)])
    keep()
    take_redis_away(settings)
    hand = read_hand_all(TABLE, HAND)
    assert not hand.buffer_answered
    assert [(view.agent_id, view.turn is not None) for view in hand.turns] == [("rocky", True), ("nit", False)]


@pytest.mark.parametrize(
    ("table", "hand", "agent"),
    [
        ("", 1, "rocky"), ("a\0b", 1, "rocky"), ("T", -1, "rocky"), ("T", 2**63, "rocky"), ("T", 1, "\ud800"),
        ("x" * 201, 1, "rocky"), ("T", 1, "x" * 201),
    ],
)  # fmt: skip
def test_ids_that_no_store_could_hold_are_refused_before_any_store_is_asked(table: str, hand: int, agent: str) -> None:
    # SF-4
    with pytest.raises(ValueError, match=r"^The (table|hand|agent) "):
        read_hand(table, hand, agent_id=agent)


@pytest.mark.parametrize("odd", ["a:b", "{a}", "a%3Ab", "*", "a b", "ü", "-" * 200])
def test_odd_ids_reach_their_own_turns_and_nobody_elses(odd: str) -> None:  # CAP-12
    mine = turn(odd, 0, table=odd, agent_version_id="v1")
    write(mine, turn("b", 1, table=odd), turn(odd, 2, table="a"))
    assert [view.turn for view in read_hand(odd, HAND, agent_id=odd).turns] == [mine]


def test_keys_that_expire_one_by_one_between_two_reads_leave_a_gap_that_the_ledger_names(
    capture_redis: redis.Redis,
) -> None:  # RD-2, VW-6
    play([turn("rocky", 0), turn("rocky", 1)])
    capture_redis.pexpire(f"turn:{{{TABLE}:{HAND}}}:rocky:0", 30)
    assert len(captured(read_hand(TABLE, HAND, agent_id="rocky"))) == 2
    wait_until_gone(capture_redis, f"turn:{{{TABLE}:{HAND}}}:rocky:0")
    hand = read_hand(TABLE, HAND, agent_id="rocky")
    assert places(hand) == [(0, "rocky"), (1, "rocky")]
    assert [view.action_index for view in captured(hand)] == [1]


def captured(hand: Hand) -> list[TurnView]:
    return [view for view in hand.turns if view.turn]


def wait_until_gone(client: redis.Redis, *keys: str) -> None:
    done = threading.Event()
    for _ in range(1000):
        if not client.exists(*keys):
            return
        done.wait(0.01)
    raise AssertionError("the keys did not expire")


def test_a_day_passes_in_two_seconds(settings, capture_redis: redis.Redis) -> None:  # PIN-2, RD-2, VW-6
    settings.CAPTURE_TTL_SECONDS = 2
    play([turn("rocky", 0), turn("nit", 1), turn("rocky", 2)])
    keep()
    wait_until_gone(capture_redis, *capture_redis.keys("*"))
    hand = read_hand_all(TABLE, HAND)
    assert [(view.agent_id, view.turn) for view in hand.turns] == [
        ("rocky", turn("rocky", 0)), ("nit", None), ("rocky", turn("rocky", 2)),
    ]  # fmt: skip
    gone = keep("nit")  # list, hand and pin say the same of what has expired
    assert (gone.outcome, gone.kept, gone.turns, gone.expired) == ("nothing_to_capture", 0, 1, 1)
    (listed,) = recent_hands().hands
    assert (listed.turns, listed.kept, listed.lost) == (3, 2, 0)
