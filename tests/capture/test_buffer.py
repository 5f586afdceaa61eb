"""The hot buffer, on one Redis and on a cluster of three real nodes: the same contract for both."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.backoff import NoBackoff
from redis.retry import Retry

from capture.buffer import BufferUnavailable, DamagedKey, TurnBuffer, Turns
from capture.prompt import Prompt
from capture.turns import Turn, TurnError, TurnKey
from tests.faults.redis_node import RedisNode, redis_cluster

HASH_OF_ENVELOPE = Prompt("envelope").envelope_hash


def turn(agent: str = "rocky", index: int = 0, table: str = "T-1", hand: int = 7, **fields: Any) -> Turn:
    name = f"{agent}.{table}.{hand}.{index}"
    made: dict[str, Any] = {
        "prompt": Prompt("envelope", f"remainder {name}"),
        "response": f"response {name}",
        "decision": [{"by": name}],
        "captured_at": datetime(2026, 11, 1, tzinfo=UTC),
    }
    return Turn(TurnKey(agent, table, hand, index), **(made | fields))


class Counted:
    """Stands before a client and counts its trips and their commands."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.trips: list[list[str]] = []

    def pipeline(self, **options: Any) -> Any:
        pipeline = self._client.pipeline(**options)
        trip: list[str] = []
        self.trips.append(trip)
        real = pipeline.execute_command

        def execute_command(*command: Any) -> Any:
            trip.append(f"{command[0]} {command[1].decode()}")
            return real(*command)

        pipeline.execute_command = execute_command
        return pipeline


def put_another_kind(client: Any, key: str, kind: str = "list") -> None:
    """In the place of what is there, a value that none of our commands reads."""
    client.delete(key)
    if kind == "list":
        client.rpush(key, "x")
    elif kind == "hash":
        client.hset(key, "x", "y")
    else:
        client.sadd(key, "x")


class BufferContract:
    """What holds for every kind of client. Subclasses give `client`, a fixture of an empty store."""

    @pytest.fixture
    def buffer(self, client: Any) -> TurnBuffer:
        return TurnBuffer(client, 600)

    def test_turns_come_back_in_action_order_however_they_were_written(self, buffer: TurnBuffer) -> None:  # CAP-1
        turns = [turn(index=index) for index in range(12)]
        buffer.write(turns[::-1])
        assert buffer.hand_turns("T-1", 7, agent_id="rocky") == turns

    def test_each_agent_has_its_own_turns_at_the_same_action_index(self, buffer: TurnBuffer) -> None:  # CAP-12
        buffer.write([turn("nit", 3), turn("rocky", 3), turn("rocky", 4), turn("nit", 3, hand=8)])
        assert buffer.hand_turns("T-1", 7, agent_id="nit") == [turn("nit", 3)]
        assert buffer.hand_all_turns("T-1", 7) == {
            "nit": [turn("nit", 3)],
            "rocky": [turn("rocky", 3), turn("rocky", 4)],
        }
        assert buffer.agents("T-1", 7) == ["nit", "rocky"]
        assert buffer.turns_of_agents("T-1", 7, ["rocky", "nit", "nobody"]) == [
            turn("nit", 3),
            turn("rocky", 3),
            turn("rocky", 4),
        ]

    def test_where_there_is_nothing_nothing_is_read(self, buffer: TurnBuffer) -> None:  # CAP-7
        buffer.write([])
        assert buffer.hand_turns("T-1", 7, agent_id="rocky") == []
        assert buffer.hand_all_turns("T-1", 7) == {}
        assert buffer.turns_of_agents("T-1", 7, []) == []
        assert buffer.agents("T-1", 7) == []

    def test_writing_a_key_again_replaces_it(self, buffer: TurnBuffer) -> None:  # CAP-12
        buffer.write([turn(response="first"), turn(index=1)])
        buffer.write([turn(response="second", prompt=Prompt("another", "x"))])
        found = buffer.hand_turns("T-1", 7, agent_id="rocky")
        assert [one.response for one in found] == ["second", "response rocky.T-1.7.1"]
        assert found[0].prompt == Prompt("another", "x")

    def test_the_last_of_two_with_one_key_in_a_batch_counts(self, buffer: TurnBuffer) -> None:  # CAP-12
        buffer.write([turn(response="first"), turn(response="second")])
        assert [one.response for one in buffer.hand_turns("T-1", 7, agent_id="rocky")] == ["second"]

    def test_every_key_carries_the_ttl_and_the_literal_braces(self, buffer: TurnBuffer, client: Any) -> None:  # CAP-11
        buffer.write([turn("nit", 3), turn("rocky", 4)])
        keys = {
            "turn:{T-1:7}:nit:3",
            "turn:{T-1:7}:rocky:4",
            "hand:{T-1:7}:nit",
            "hand:{T-1:7}:rocky",
            "agents:{T-1:7}",
            f"env:{HASH_OF_ENVELOPE}",
        }
        assert {key.decode() for key in client.scan_iter()} == keys  # CAP-12
        assert all(0 < client.ttl(key) <= 600 for key in keys)

    def test_an_envelope_is_stored_once_for_all_turns_and_agents(
        self, buffer: TurnBuffer, client: Any
    ) -> None:  # CAP-8
        envelopes = [f"envelope {number}" for number in range(7)]
        buffer.write([turn(index=n, agent=f"a{n % 3}", prompt=Prompt(envelopes[n % 7], f"{n}")) for n in range(100)])
        buffer.write([turn(index=n, prompt=Prompt(envelopes[n % 7], f"{n}")) for n in range(100, 150)])
        assert len(list(client.scan_iter("env:*"))) == 7
        found = buffer.hand_turns("T-1", 7, agent_id="rocky")
        assert [one.prompt.text for one in found] == [f"{envelopes[n % 7]}\n{n}" for n in range(100, 150)]

    def test_every_turn_that_uses_an_envelope_extends_its_life(self, buffer: TurnBuffer, client: Any) -> None:  # CAP-8
        buffer.write([turn()])
        client.expire(f"env:{HASH_OF_ENVELOPE}", 20)
        client.expire("agents:{T-1:7}", 20)
        buffer.write([turn(index=1)])
        assert client.ttl(f"env:{HASH_OF_ENVELOPE}") > 500
        assert client.ttl("agents:{T-1:7}") > 500

    @pytest.mark.parametrize("lost", ["one key", "everything"])
    def test_an_envelope_that_the_store_has_lost_is_stored_again(
        self, buffer: TurnBuffer, client: Any, lost: str
    ) -> None:  # CAP-8
        buffer.write([turn()])
        if lost == "everything":
            client.flushall()
        else:
            client.delete(f"env:{HASH_OF_ENVELOPE}")
        buffer.write([turn(index=1)])
        assert buffer.hand_turns("T-1", 7, agent_id="rocky")[-1] == turn(index=1)

    def test_an_envelope_that_goes_while_its_turn_is_written_is_stored_again(self, client: Any) -> None:  # CAP-8
        class LosesIt(Counted):
            """The store loses its envelopes just before the turns go in."""

            def pipeline(self, **options: Any) -> Any:
                if len(self.trips) == 2:
                    client.delete(f"env:{HASH_OF_ENVELOPE}")
                return super().pipeline(**options)

        buffer = TurnBuffer(LosesIt(client), 600)
        buffer.write([turn()])
        assert buffer.hand_turns("T-1", 7, agent_id="rocky") == [turn()]

    def test_a_turn_whose_envelope_is_gone_is_damaged_and_its_siblings_are_whole(
        self, buffer: TurnBuffer, client: Any
    ) -> None:  # CAP-9
        gone = turn(index=1, prompt=Prompt("another", "x"))
        buffer.write([turn(), gone, turn(index=2)])
        client.delete(f"env:{gone.prompt.envelope_hash}")
        found = buffer.hand_turns("T-1", 7, agent_id="rocky")
        assert found == [turn(), turn(index=2)]
        assert found.damaged == {gone.key: "its envelope is gone"}

    @pytest.mark.parametrize("content", [b"another text", b"\xff", b""])
    def test_an_envelope_is_checked_against_its_hash_on_every_read(
        self, buffer: TurnBuffer, client: Any, content: bytes
    ) -> None:  # CAP-9
        buffer.write([turn()])
        client.set(f"env:{HASH_OF_ENVELOPE}", content, ex=600)
        found = buffer.hand_turns("T-1", 7, agent_id="rocky")
        assert found == []
        assert "hash" in found.damaged[turn().key]

    @pytest.mark.parametrize("content", [b"", b"\xc1", b"\x80", b'{"a":1}'])
    def test_a_damaged_record_is_named_and_its_siblings_are_read(
        self, buffer: TurnBuffer, client: Any, content: bytes
    ) -> None:  # CAP-9
        buffer.write([turn(), turn(index=1, response="lone \ud83e"), turn(index=2)])
        client.set("turn:{T-1:7}:rocky:1", content, ex=600)
        found = buffer.hand_turns("T-1", 7, agent_id="rocky")
        assert found == [turn(), turn(index=2)]
        assert list(found.damaged) == [turn(index=1).key]

    def test_a_record_under_anothers_key_is_not_taken_for_the_others(
        self, buffer: TurnBuffer, client: Any
    ) -> None:  # CAP-9
        buffer.write([turn("nit", 3), turn("rocky", 3)])
        client.set("turn:{T-1:7}:nit:3", client.get("turn:{T-1:7}:rocky:3"), ex=600)
        found = buffer.hand_turns("T-1", 7, agent_id="nit")
        assert (found, list(found.damaged)) == ([], [turn("nit", 3).key])

    def test_a_turn_that_expired_before_its_index_is_simply_gone(
        self, buffer: TurnBuffer, client: Any
    ) -> None:  # CAP-11
        buffer.write([turn(), turn(index=1)])
        client.delete("turn:{T-1:7}:rocky:0")
        found = buffer.hand_turns("T-1", 7, agent_id="rocky")
        assert (found, found.damaged) == ([turn(index=1)], {})

    @pytest.mark.parametrize("kind", ["list", "hash", "set"])
    def test_another_kind_of_value_under_a_turns_key_costs_that_turn_alone(
        self, buffer: TurnBuffer, client: Any, kind: str
    ) -> None:  # CAP-9 SF-5
        buffer.write([turn(), turn(index=1), turn(index=2)])
        put_another_kind(client, "turn:{T-1:7}:rocky:1", kind)
        found = buffer.hand_turns("T-1", 7, agent_id="rocky")
        assert found == [turn(), turn(index=2)]
        assert found.damaged == {turn(index=1).key: "its key holds no record"}

    def test_another_kind_of_value_under_an_envelopes_key_costs_the_turns_that_use_it(
        self, buffer: TurnBuffer, client: Any
    ) -> None:  # CAP-9 SF-5
        other = turn(index=1, prompt=Prompt("another", "x"))
        buffer.write([turn(), other, turn(index=2)])
        put_another_kind(client, f"env:{other.prompt.envelope_hash}")
        found = buffer.hand_turns("T-1", 7, agent_id="rocky")
        assert found == [turn(), turn(index=2)]
        assert found.damaged == {other.key: "the key of its envelope holds no text"}

    def test_a_damaged_list_of_one_agents_turns_hides_nobody_elses_nor_what_is_asked_for_by_its_index(
        self, buffer: TurnBuffer, client: Any
    ) -> None:  # CAP-9 SF-5
        buffer.write([turn("nit", 1), turn("rocky", 2), turn("rocky", 3)])
        put_another_kind(client, "hand:{T-1:7}:rocky")
        found = buffer.turns_of_agents("T-1", 7, ["nit", "rocky"])
        assert (found, found.unlisted) == ([turn("nit", 1)], {"rocky"})
        found = buffer.turns_of_agents("T-1", 7, ["nit", "rocky"], known={"rocky": [3, 8], "nit": [5]})
        assert found == [turn("nit", 1), turn("rocky", 3)]
        assert buffer.hand_turns("T-1", 7, agent_id="rocky", known=[2]) == [turn("rocky", 2)]

    def test_a_damaged_list_of_who_played_is_an_error_of_its_own(
        self, buffer: TurnBuffer, client: Any
    ) -> None:  # CAP-9 SF-5
        buffer.write([turn()])
        put_another_kind(client, "agents:{T-1:7}")
        with pytest.raises(DamagedKey, match="damaged"):
            buffer.agents("T-1", 7)
        assert buffer.hand_turns("T-1", 7, agent_id="rocky") == [turn()]

    def test_odd_bytes_in_one_turn_leave_its_neighbours_alone(self, buffer: TurnBuffer) -> None:  # CAP-9
        odd = "NUL \x00 lone \ud83e rtl \u202e CRLF\r\n 🂡 ход"
        turns = [
            turn(),
            turn(index=1, prompt=Prompt(odd, odd), response=odd, reasoning=odd, knowledge=b"\x00\xff", decision=[odd]),
            turn(index=2, prompt=Prompt("E" * 1_000_000, odd), response="", decision=None),
        ]
        buffer.write(turns)
        assert buffer.hand_turns("T-1", 7, agent_id="rocky") == turns

    def test_what_is_stored_is_readable_text_and_not_compressed(
        self, buffer: TurnBuffer, client: Any
    ) -> None:  # CAP-14
        buffer.write([turn(response="ход игры " * 50)])
        assert ("ход игры " * 50).encode() in client.get("turn:{T-1:7}:rocky:0")

    def test_an_owners_read_touches_its_own_keys_and_the_envelopes_they_name(
        self, buffer: TurnBuffer, client: Any
    ) -> None:  # RD-3
        buffer.write([turn("nit", 3, prompt=Prompt("of nit")), turn("rocky", 4), turn("rocky", 5)])
        counted = Counted(client)
        TurnBuffer(counted, 600).hand_turns("T-1", 7, agent_id="rocky")
        touched = [command for trip in counted.trips for command in trip]
        assert touched == ["SMEMBERS hand:{T-1:7}:rocky", "MGET turn:{T-1:7}:rocky:4", f"GET env:{HASH_OF_ENVELOPE}"]

    def test_reads_and_writes_take_the_same_trips_however_much_there_is(self, client: Any) -> None:  # PF-4
        counted = Counted(client)
        buffer = TurnBuffer(counted, 600)
        buffer.write([turn()])
        trips = []
        for hand, turns, agents in ((1, 2, 2), (2, 200, 9)):
            counted.trips.clear()
            buffer.write([turn(f"a{number % agents}", number, hand=hand) for number in range(turns)])
            written = len(counted.trips)
            found = buffer.hand_all_turns("T-1", hand)
            assert sum(map(len, found.values())) == turns
            trips.append((written, len(counted.trips) - written))
        assert trips == [(2, 4), (2, 4)]

    ids = st.text(st.sampled_from("ab:{}%\u202e\ud83e /*?[]\r\n\t日"), max_size=5)

    @settings(
        max_examples=40,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
        deadline=None,
    )
    @given(st.lists(st.tuples(ids, ids, st.integers(-3, 30), st.integers(-3, 3)), min_size=2, max_size=8, unique=True))
    def test_no_id_reaches_anothers_key(self, client: Any, parts: list[tuple[str, str, int, int]]) -> None:  # CAP-12
        client.flushall()
        buffer = TurnBuffer(client, 600)
        turns = [turn(agent, index, table, hand) for agent, table, hand, index in parts]
        buffer.write(turns)
        for one in turns:
            key = one.key
            mine = [
                other
                for other in turns
                if (other.key.table_id, other.key.hand_number) == (key.table_id, key.hand_number)
            ]
            hand = buffer.hand_turns(key.table_id, key.hand_number, agent_id=key.agent_id)
            assert {found.key.action_index for found in hand} == {
                other.key.action_index for other in mine if other.key.agent_id == key.agent_id
            }
            assert one in hand
            assert set(buffer.agents(key.table_id, key.hand_number)) == {other.key.agent_id for other in mine}


class TestOneRedis(BufferContract):
    @pytest.fixture
    def client(self, capture_redis: redis.Redis) -> redis.Redis:
        return capture_redis


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with redis_cluster(3) as (client, _):
        yield client


class TestClusterOfThree(BufferContract):
    @pytest.fixture
    def client(self, cluster: Any) -> Any:
        cluster.flushall()
        return cluster

    def test_the_keys_of_one_hand_are_on_one_node_and_all_nodes_have_some(self, client: Any) -> None:  # CAP-12
        TurnBuffer(client, 600).write([turn(f"a{n % 5}", n, hand=hand) for hand in range(40) for n in range(5)])
        on = [
            {key.decode().split("}")[0].split("{")[1] for key in client.scan_iter("*{*", target_nodes=node)}
            for node in client.get_nodes()
        ]
        assert all(on)
        assert sum(map(len, on)) == len(set().union(*on)) == 40


# ---- what does not depend on the client


@pytest.mark.parametrize("ids", [("a\0", "T-1"), ("rocky", "T\0"), (7, "T-1"), ("rocky", None)])
def test_an_id_with_a_nul_is_refused_by_every_read(ids: tuple[Any, Any]) -> None:  # CAP-12
    with pytest.raises(ValueError, match=r"NUL|must be text"):
        TurnBuffer(object()).hand_turns(ids[1], 7, agent_id=ids[0])


def test_a_hand_number_that_is_no_integer_is_refused() -> None:  # CAP-12
    for read in (TurnBuffer(object()).agents, TurnBuffer(object()).hand_all_turns):
        with pytest.raises(ValueError, match="hand_number"):
            read("T-1", "7}")  # type: ignore[operator]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
def test_a_number_that_no_ledger_could_hold_makes_no_key(number: int) -> None:  # CAP-12 SF-4
    with pytest.raises(ValueError, match="hand_number must fit in 64 bits"):
        TurnKey("rocky", "T-1", number, 0)
    with pytest.raises(ValueError, match="action_index must fit in 64 bits"):
        TurnKey("rocky", "T-1", 7, number)


@pytest.mark.parametrize("member", [b"\xff\xfe", b"abc", b"", b"99999999999999999999", b"01", b"a\0b"])
def test_what_a_damaged_index_holds_costs_no_turn(capture_redis: redis.Redis, member: bytes) -> None:  # CAP-12 SF-5
    buffer = TurnBuffer(capture_redis)
    buffer.write([turn(index=1)])
    capture_redis.sadd("hand:{T-1:7}:rocky", member)
    assert [one.key.action_index for one in buffer.hand_turns("T-1", 7, agent_id="rocky")] == [1]


@pytest.mark.parametrize("member", [b"\xff\xfe", b"a\0b"])
def test_a_name_that_nobody_can_have_is_not_among_the_agents(capture_redis: redis.Redis, member: bytes) -> None:
    # CAP-12 SF-5
    buffer = TurnBuffer(capture_redis)
    buffer.write([turn()])
    capture_redis.sadd("agents:{T-1:7}", member)
    assert buffer.agents("T-1", 7) == ["rocky"]
    assert [one.key.agent_id for one in buffer.hand_all_turns("T-1", 7)["rocky"]] == ["rocky"]


def test_reading_without_naming_an_agent_cannot_be_written() -> None:  # RD-3 E-AFT-4
    with pytest.raises(TypeError):
        TurnBuffer(object()).hand_turns("T-1", 7)  # type: ignore[call-arg]


def test_a_turn_that_cannot_be_encoded_leaves_the_buffer_as_it_was(capture_redis: redis.Redis) -> None:  # CAP-10
    with pytest.raises(TurnError, match="response is int"):
        TurnBuffer(capture_redis).write([turn(), turn(index=1, response=7)])
    assert capture_redis.dbsize() == 0


def test_a_lifetime_is_at_least_a_second() -> None:  # CAP-11
    with pytest.raises(ValueError, match="ttl_seconds"):
        TurnBuffer(object(), 0)


def test_a_client_that_decodes_what_it_reads_is_refused() -> None:  # CAP-9
    with pytest.raises(ValueError, match="decode"):
        TurnBuffer(redis.Redis(decode_responses=True))


def test_the_lifetime_is_a_day_where_nobody_says(capture_redis: redis.Redis) -> None:  # CAP-11
    TurnBuffer(capture_redis).write([turn()])
    assert 86_300 < capture_redis.ttl("turn:{T-1:7}:rocky:0") <= 86_400


def test_an_evicted_index_is_written_again_with_the_next_turn(capture_redis: redis.Redis) -> None:  # CAP-8
    buffer = TurnBuffer(capture_redis)
    buffer.write([turn()])
    capture_redis.delete("hand:{T-1:7}:rocky", "agents:{T-1:7}")
    buffer.write([turn(index=1)])
    assert buffer.hand_turns("T-1", 7, agent_id="rocky") == [turn(index=1)]


def test_two_writers_at_once_lose_nothing(capture_redis: redis.Redis) -> None:  # CAP-12
    turns = {
        agent: [turn(agent, n, prompt=Prompt(f"e{n % 3}", agent)) for n in range(60)] for agent in ("nit", "rocky")
    }

    def write(agent: str) -> None:
        for one in turns[agent]:
            TurnBuffer(capture_redis).write([one])

    threads = [threading.Thread(target=write, args=[agent]) for agent in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert TurnBuffer(capture_redis).hand_all_turns("T-1", 7) == turns


def test_a_refusal_of_the_store_is_said_without_its_words(capture_redis: redis.Redis) -> None:  # CAP-10
    capture_redis.set("hand:{T-1:7}:rocky", "secret words")
    with pytest.raises(BufferUnavailable, match=r"^Redis answered WRONGTYPE$"):
        TurnBuffer(capture_redis).write([turn()])


@pytest.mark.parametrize("denied", ["smembers", "mget", "get"])
def test_a_reader_that_may_not_read_is_told_so_and_never_that_there_is_nothing(denied: str) -> None:  # CAP-10 SF-5
    with RedisNode() as node, node.client() as client:
        TurnBuffer(client).write([turn()])
        client.acl_setuser("reader", enabled=True, nopass=True, keys=["*"], commands=["+@all", f"-{denied}"])
        reader = TurnBuffer(node.client(username="reader", password="x"))
        with pytest.raises(BufferUnavailable, match=r"^Redis (answered NOPERM|failed \(NoPermissionError\))$"):
            reader.hand_turns("T-1", 7, agent_id="rocky")


def test_a_reader_that_may_not_ask_for_types_reads_all_the_same() -> None:  # CAP-10
    with RedisNode() as node, node.client() as client:
        TurnBuffer(client).write([turn(), turn(index=1)])
        client.delete("turn:{T-1:7}:rocky:1")
        client.acl_setuser("reader", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-type"])
        with node.client(username="reader", password="x") as reader:
            found = TurnBuffer(reader).hand_turns("T-1", 7, agent_id="rocky")
    assert (found, found.damaged) == ([turn()], {})


def test_a_store_that_is_not_there_is_said_by_name() -> None:  # PIN-2
    nobody = redis.Redis(port=1, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0))
    for use in (lambda b: b.write([turn()]), lambda b: b.agents("T", 1), lambda b: b.hand_turns("T", 1, agent_id="a")):
        with pytest.raises(BufferUnavailable, match=r"^Redis is down$"):
            use(TurnBuffer(nobody))


def test_a_full_redis_still_reads_and_says_what_it_did_not_take() -> None:  # CAP-10 SF-5
    with RedisNode("--maxmemory-policy", "noeviction") as node, node.client() as client:
        buffer = TurnBuffer(client)
        buffer.write([turn()])
        # Half of what it holds: filled to the brim, it has room again once it has let go of a buffer of its own.
        client.config_set("maxmemory", client.info("memory")["used_memory"] // 2)
        with pytest.raises(BufferUnavailable, match=r"^Redis is out of memory$"):
            buffer.write([turn(index=1)])
        assert buffer.hand_turns("T-1", 7, agent_id="rocky") == [turn()]


def test_turns_are_a_list() -> None:
    assert isinstance(Turns(), list)
    assert Turns() == []
