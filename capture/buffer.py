"""The hot buffer: one turn a key in Redis, for a day, envelopes stored once.

    turn:{table:hand}:agent:actionIndex   the record        hand:{table:hand}:agent   its action indices
    agents:{table:hand}                   who has turns     env:hash                  an envelope

The braces are literal: they are the hash tag that keeps a hand in one slot, so the same code runs on Redis Cluster.
Ids are escaped so that none can reach another's key. Works with redis-py's `Redis` and `RedisCluster`.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote_from_bytes

import redis

from capture.prompt import bytes_text, text_bytes
from capture.turns import (
    Turn,
    TurnError,
    TurnKey,
    check_id,
    check_number,
    decode_turn,
    encode_turn,
    freeze_decision,
    read_record,
)

DAY: Final = 86_400


class BufferUnavailable(Exception):
    """Redis did not answer, or refused. The message names the kind of trouble, never content."""


class DamagedKey(BufferUnavailable):
    """One key holds another kind of value than ours. Redis answers, and other keys may well be whole."""


class Turns(list[Turn]):
    """Whole turns in action order. `damaged`: keys whose record is there but cannot be rebuilt, and why. `unlisted`:
    agents whose own list of turns is damaged; of theirs only those are here that were asked for by their index."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        super().__init__(turns)
        self.damaged: dict[TurnKey, str] = {}
        self.unlisted: set[str] = set()


class Encoded:
    """A turn ready to be stored; `decision` as for `encode_turn`. Raises TurnError for one that cannot be encoded."""

    __slots__ = ("data", "envelope", "envelope_key", "key")

    def __init__(self, turn: Turn, decision: bytes | None) -> None:
        self.data, envelope_hash = encode_turn(turn, decision)
        self.key = turn.key
        self.envelope = turn.prompt.envelope
        self.envelope_key = _envelope_key(envelope_hash)


class TurnBuffer:
    """The turns of the last day. Reads take the same number of round trips however many turns and agents a hand has."""

    def __init__(self, redis_client: Any, ttl_seconds: int = DAY) -> None:
        """`redis_client`: a redis-py `Redis` or `RedisCluster` with raw byte answers; give it short timeouts and no
        retries (see the README). No server is touched here. Raises ValueError for settings that cannot work.
        """
        if ttl_seconds < 1:
            raise ValueError("ttl_seconds must be at least 1")
        settings: dict[str, Any] = getattr(redis_client, "get_connection_kwargs", dict)()
        if settings.get("decode_responses") is True:
            raise ValueError("the Redis client must not decode responses: a turn is bytes")
        self._redis = redis_client
        self._ttl = ttl_seconds

    # ---- writing

    def write(self, turns: Iterable[Turn]) -> None:
        """Store the turns, over any that are there. Raises TurnError for one that cannot be encoded (then none is
        written), BufferUnavailable where any was not stored."""
        reasons = self.store([Encoded(turn, freeze_decision(turn)) for turn in turns])
        for reason in reasons:
            if reason is not None:
                raise BufferUnavailable(reason)

    def store(self, batch: Sequence[Encoded]) -> list[str | None]:
        """Store in two trips. For each turn None, or why it was not stored. Raises BufferUnavailable where Redis
        does not answer."""
        envelopes = {one.envelope_key: one.envelope for one in batch}
        extend = [("EXPIRE", key, self._ttl) for key in envelopes]
        self._keep_envelopes(envelopes, self._run(extend))  # so that no turn is there before its prompt
        commands, uses = self._turn_commands(batch)
        replies = self._run(commands + extend)
        # The last word on the envelopes: none may have left, by eviction or FLUSHALL, while the turns went in, and
        # each outlives the turns that use it.
        lost = self._keep_envelopes(envelopes, replies[len(commands) :])
        errors = [why(reply) if isinstance(reply, Exception) else None for reply in replies[: len(commands)]]
        return [
            next((errors[index] for index in used if errors[index]), lost.get(one.envelope_key))
            for one, used in zip(batch, uses, strict=True)
        ]

    def _turn_commands(self, batch: Sequence[Encoded]) -> tuple[list[tuple[Any, ...]], list[list[int]]]:
        """The commands that store the batch, and for each turn which of them it depends on."""
        members: dict[bytes, dict[bytes, None]] = {}
        for one in batch:
            key = one.key
            members.setdefault(_hand_key(key), {})[b"%d" % key.action_index] = None
            members.setdefault(_agents_key(key.table_id, key.hand_number), {})[text_bytes(key.agent_id)] = None
        commands: list[tuple[Any, ...]] = []
        place: dict[bytes, int] = {}
        for set_key, names in members.items():
            place[set_key] = len(commands)
            commands += [("SADD", set_key, *names), ("EXPIRE", set_key, self._ttl)]
        uses = []
        for one in batch:
            sets = (_hand_key(one.key), _agents_key(one.key.table_id, one.key.hand_number))
            uses.append([len(commands), *(place[name] + step for name in sets for step in (0, 1))])
            commands.append(("SET", _turn_key(one.key), one.data, "EX", self._ttl))
        return commands, uses

    def _keep_envelopes(self, envelopes: dict[bytes, str], replies: list[Any]) -> dict[bytes, str]:
        """Store those that Redis says it does not have. Why any of them was not stored, by key."""
        missing = [key for key, reply in zip(envelopes, replies, strict=True) if reply != 1]
        answers = self._run([("SET", key, text_bytes(envelopes[key]), "EX", self._ttl) for key in missing])
        return {key: why(reply) for key, reply in zip(missing, answers, strict=True) if isinstance(reply, Exception)}

    # ---- reading

    def hand_turns(self, table_id: str, hand_number: int, *, agent_id: str, known: Iterable[int] = ()) -> Turns:
        """This agent's whole turns of the hand, in action order. Touches no key of another agent. `known`: action
        indices to look for where the agent's list of them is damaged. Raises BufferUnavailable where Redis does not
        answer."""
        return self.turns_of_agents(table_id, hand_number, [agent_id], known={agent_id: known})

    def hand_all_turns(self, table_id: str, hand_number: int) -> dict[str, list[Turn]]:
        """The operator's read: the whole turns of every agent in the buffer, by agent id."""
        agent_ids = self.agents(table_id, hand_number)
        turns: dict[str, list[Turn]] = {agent_id: [] for agent_id in agent_ids}
        for turn in self.turns_of_agents(table_id, hand_number, agent_ids):
            turns[turn.key.agent_id].append(turn)
        return turns

    def agents(self, table_id: str, hand_number: int) -> list[str]:
        """Who has turns of this hand in the buffer, sorted. Raises DamagedKey where that list is none."""
        _check_hand(table_id, hand_number)
        members = self._run([("SMEMBERS", _agents_key(table_id, hand_number))])[0]
        if _is_damaged(members):
            raise DamagedKey("the list of who played is damaged")
        return sorted({agent_id for member in members if (agent_id := _agent_id(member)) is not None})

    def hands_there(self, table_id: str, hand_numbers: Iterable[int]) -> set[int]:
        """Which of these hands of a table have turns here. One trip."""
        numbers = list(hand_numbers)
        there = self._run([("EXISTS", _agents_key(table_id, number)) for number in numbers])
        return {number for number, found in zip(numbers, there, strict=True) if found == 1}

    def turns_of_agents(
        self,
        table_id: str,
        hand_number: int,
        agent_ids: Iterable[str],
        *,
        known: Mapping[str, Iterable[int]] | None = None,
    ) -> Turns:
        """The whole turns of these agents, in action order: three round trips for any number of agents and turns.
        `known`: for each agent the action indices to look for where its own list of them is damaged."""
        _check_hand(table_id, hand_number)
        hands = [TurnKey(agent_id, table_id, hand_number, 0) for agent_id in agent_ids]
        turns = Turns()
        named: set[TurnKey] = set()
        lists = self._run([("SMEMBERS", _hand_key(hand)) for hand in hands])
        for hand, indices in zip(hands, lists, strict=True):
            if _is_damaged(indices):
                turns.unlisted.add(hand.agent_id)
                indices = (known or {}).get(hand.agent_id, ())
            named.update(key for index in indices if (key := _key_of(hand, index)) is not None)
        if named:
            self._rebuild(sorted(named, key=lambda key: (key.action_index, key.agent_id)), turns)
        return turns

    def _rebuild(self, keys: list[TurnKey], turns: Turns) -> None:
        """Adds the turns under these keys. What is not there has expired, or was evicted before its hand's index."""
        # One slot, so one MGET also on a cluster.
        stored = dict(zip(keys, self._answer([("MGET", *map(_turn_key, keys))])[0], strict=True))
        records: dict[TurnKey, dict[str, Any]] = {}
        for key, data in stored.items():
            try:
                if data is not None:
                    records[key] = read_record(data)
            except TurnError as error:
                turns.damaged[key] = str(error)
        hashes = list({record["envelope"] for record in records.values()})
        missing = [key for key, data in stored.items() if data is None]
        # MGET says of a key that holds no text that it is not there; its type tells the two apart.
        asked = [("GET", _envelope_key(name)) for name in hashes] + [("TYPE", _turn_key(key)) for key in missing]
        replies = self._run(asked)
        envelopes = dict(zip(hashes, replies, strict=False))
        kinds = zip(missing, replies[len(hashes) :], strict=True)
        turns.damaged |= {key: "its key holds no record" for key, kind in kinds if _is_another_kind(kind)}
        for key, record in records.items():
            try:
                turns.append(_whole(key, record, envelopes[record["envelope"]]))
            except TurnError as error:
                turns.damaged[key] = str(error)

    # ---- Redis

    def ping(self) -> None:
        """One round trip. Raises BufferUnavailable where Redis does not answer, or refuses."""
        try:
            self._redis.ping()
        except (redis.RedisError, OSError) as error:
            raise BufferUnavailable(why(error)) from None

    def _answer(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        replies = self._run(commands)
        for reply in replies:
            if isinstance(reply, Exception):
                raise BufferUnavailable(why(reply))
        return replies

    def _run(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        """One pipeline, no transaction; errors stand among the replies."""
        if not commands:
            return []
        try:
            pipeline = self._redis.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            replies: list[Any] = pipeline.execute(raise_on_error=False)
            return replies
        except (redis.RedisError, OSError) as error:
            raise BufferUnavailable(why(error)) from None


def _whole(key: TurnKey, record: dict[str, Any], envelope: Any) -> Turn:
    """`envelope` is what Redis said to the question for it."""
    if envelope is None:
        raise TurnError("its envelope is gone")
    if _is_damaged(envelope):
        raise TurnError("the key of its envelope holds no text")
    try:
        turn = decode_turn(record, bytes_text(envelope))
    except UnicodeDecodeError:
        raise TurnError("the envelope does not have the hash it is stored under") from None
    if turn.key != key:
        raise TurnError("the record belongs to another turn")
    return turn


def _is_another_kind(reply: Any) -> bool:
    """Whether TYPE names something that is no text. A record that was written since MGET looked is text, and no
    damage; where TYPE is not allowed nothing is known."""
    return isinstance(reply, bytes) and reply not in (b"none", b"string")


def _is_damaged(reply: Any) -> bool:
    """Whether Redis says that this one key holds another kind of value than was asked for. Raises BufferUnavailable
    for any other error: that one is not the key's alone."""
    if not isinstance(reply, Exception):
        return False
    if isinstance(reply, redis.ResponseError) and str(reply).startswith("WRONGTYPE"):
        return True
    raise BufferUnavailable(why(reply))


# ---- keys

_PLAIN = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "%:{}")


@functools.lru_cache(maxsize=4096)
def _escaped(text: str) -> str:
    """Percent-encoding of all but visible ASCII, and of `%`, `:` and braces, which have a meaning in keys."""
    return quote_from_bytes(text_bytes(text), safe=_PLAIN)


def _hash_tag(table_id: str, hand_number: int) -> str:
    return f"{{{_escaped(table_id)}:{hand_number:d}}}"


def _turn_key(key: TurnKey) -> bytes:
    return f"turn:{_hash_tag(key.table_id, key.hand_number)}:{_escaped(key.agent_id)}:{key.action_index:d}".encode()


def _hand_key(key: TurnKey) -> bytes:
    return f"hand:{_hash_tag(key.table_id, key.hand_number)}:{_escaped(key.agent_id)}".encode()


def _agents_key(table_id: str, hand_number: int) -> bytes:
    return f"agents:{_hash_tag(table_id, hand_number)}".encode()


def _envelope_key(envelope_hash: str) -> bytes:
    return f"env:{envelope_hash}".encode("utf-8", "surrogatepass")


# What a damaged index holds beside names and numbers is nobody's: nothing is stored under it.


def _agent_id(member: bytes) -> str | None:
    try:
        agent_id = bytes_text(member)
        check_id("agent_id", agent_id)
    except ValueError:
        return None
    return agent_id


def _key_of(hand: TurnKey, index: bytes | int) -> TurnKey | None:
    try:
        return TurnKey(hand.agent_id, hand.table_id, hand.hand_number, int(index))
    except ValueError:
        return None


def _check_hand(table_id: str, hand_number: int) -> None:
    check_id("table_id", table_id)
    check_number("hand_number", hand_number)


# ---- what went wrong, in words without content

_TROUBLES: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (redis.exceptions.OutOfMemoryError, "Redis is out of memory"),
    (redis.exceptions.ReadOnlyError, "Redis is read-only"),
    (redis.exceptions.BusyLoadingError, "Redis is still loading"),
    (redis.exceptions.AuthenticationError, "Redis refused the log-in"),
    (redis.exceptions.ClusterDownError, "Redis Cluster is down"),
    (redis.exceptions.TimeoutError, "Redis timed out"),
    (TimeoutError, "Redis timed out"),
    (redis.exceptions.MaxConnectionsError, "all connections to Redis are in use"),
    (redis.exceptions.ConnectionError, "Redis is down"),
    (OSError, "Redis is down"),
)


def why(error: BaseException) -> str:
    """The kind of trouble. Redis' own error texts can quote a command, so only their first word is kept."""
    for kind, words in _TROUBLES:
        if isinstance(error, kind):
            return words
    code = str(error).split(" ", 1)[0]
    if isinstance(error, redis.ResponseError) and code.isascii() and code.isupper():
        return f"Redis answered {code[:30]}"
    return f"Redis failed ({type(error).__name__})"
