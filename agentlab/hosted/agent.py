"""The hosted agent: one seat at one table, over a WebSocket.

Frames come in and become memory; a `your_turn` becomes a decision, straight down: start_turn, build_turn_context,
assemble, model, parse_choice, clamp, the wait that makes play look human, `send_to_table`, the table's echo, the
record. Every message leaves through `send_to_table`; the connection is private to this class, and a check that runs
with lint keeps it so (outbound_check.py). Nothing here touches the ORM or Redis: the recorder and the ledger take
what they are given and return at once.
"""

import asyncio
import contextlib
import logging
import random
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

import msgspec
from opentelemetry import trace
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from agentlab.agents.charge import Charge, Result
from agentlab.agents.ledger import LedgerWriter
from agentlab.common.faults import without_words
from agentlab.hosted.context import RENDERER
from agentlab.hosted.decide import Legal
from agentlab.hosted.deciding import Deployment, Outcome, Thought, decide, fallback, legal_of, think
from agentlab.hosted.frames import (
    Action,
    Enter,
    FrameError,
    HandResult,
    PlayerAction,
    PostBlind,
    Rejected,
    Sit,
    Stand,
    ToTable,
    YourTurn,
    encode,
    read_to_agent,
)
from agentlab.hosted.memory import Frame, Memory, Whispers
from agentlab.hosted.model_port import Completion
from capture.outbound import TurnOutbound
from capture.recorder import TurnRecorder
from capture.turns import Turn, TurnKey

log = logging.getLogger(__name__)
tracer = trace.get_tracer("agentlab.hosted")

# The client library logs whole frames, credentials included, when the root logger is set to DEBUG.
quiet = logging.getLogger("agentlab.hosted.socket")
quiet.setLevel(logging.WARNING)

ECHO_SECONDS = 1.0
"""How long a record waits for the table to echo or refuse the action."""
MARGIN_SECONDS = 0.25
"""What is left of the turn's clock for the way to the table."""
MODEL_SECONDS = 60.0
LONGEST_MIN_TURN = 3.0
FIRST_RETRY, LONGEST_RETRY = 0.1, 5.0


class Desk(Protocol):
    """Where an agent asks for what is not at the table. Every call may touch the database, off the event loop."""

    async def token(self) -> str:
        """A fresh `agentToken`, for the deployment of the newest published version."""
        ...

    async def deployment(self, deployment_id: int | None) -> Deployment:
        """The deployment that the table says plays this hand."""
        ...

    async def whispers(self) -> Whispers:
        """The owner's latest messages."""
        ...


@dataclass
class Tally:
    """What happened, over all the agents that share it."""

    turns: int = 0
    fallbacks: int = 0
    clamped: int = 0
    refused: int = 0
    bad_frames: int = 0
    envelopes: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _OpenTurn:
    """A turn between `your_turn` and its record. `settled` is set by the echo, the refusal, or what overtakes it."""

    key: TurnKey
    asked: Frame
    legal: Legal
    ends_at: float
    deployment_id: int | None
    deployment: Deployment | None = None
    heard: tuple[int, ...] = ()
    sent: bool = False
    refusal: str = ""
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def seconds_left(self) -> float:
        """By the table's clock, which speaks in time of day."""
        return self.ends_at - time.time()


class HostedAgent:
    """Plays one seat until it is cancelled or told to `stop`. All its parts may be shared but the connection."""

    def __init__(
        self,
        agent_id: str,
        table_id: str,
        url: str,
        *,
        desk: Desk,
        recorder: TurnRecorder,
        ledger: LedgerWriter,
        min_turn_ms: int = 0,
        tally: Tally | None = None,
    ) -> None:
        self.agent_id, self.table_id, self.url = agent_id, table_id, url
        self.memory = Memory()
        self.tally = tally or Tally()
        self._desk, self._recorder, self._ledger = desk, recorder, ledger
        self._min_turn = min(min_turn_ms / 1000, LONGEST_MIN_TURN)
        self._outbound = TurnOutbound()
        self.__socket: ClientConnection | None = None
        self._open: _OpenTurn | None = None
        self._playing: asyncio.Task[None] | None = None
        self._stopping = False
        self._play_is_over = False

    # The connection -----------------------------------------------------------------------------------------

    async def send_to_table(self, frame: ToTable) -> None:
        """The one door out. What has left stands in the turn's outbound list, without its credentials; what could
        not leave does not. Raises ConnectionError where there is no connection."""
        if self.__socket is None:
            raise ConnectionError("not connected")
        try:
            await self.__socket.send(encode(frame))
        except WebSocketException:
            raise ConnectionError("the connection is lost") from None
        self._outbound.add(msgspec.to_builtins(frame))

    async def run(self) -> None:
        """Connects, plays, and connects again after a pause that grows; ends after `stop`."""
        pause = FIRST_RETRY
        while not self._stopping:
            began = time.monotonic()
            try:
                await self._connection()
            except (OSError, WebSocketException, TimeoutError) as error:
                log.debug("%s: no connection to %s (%s)", self.agent_id, self.table_id, type(error).__name__)
            if time.monotonic() - began > LONGEST_RETRY:
                pause = FIRST_RETRY
            if not self._stopping:
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
                pause = min(pause * 2, LONGEST_RETRY)

    async def stop(self) -> None:
        """Leaves the table: no further hand, and no further connection."""
        self._stopping = True
        with contextlib.suppress(ConnectionError):
            await self.send_to_table(Stand())
        if self.__socket is not None:  # the table may have closed it meanwhile
            await self.__socket.close()

    def end_with_the_play(self) -> None:
        """Whoever started the play ends it: a turn that is still being decided is given up as if it had not been asked,
        as nothing went wrong with it."""
        self._stopping = self._play_is_over = True

    async def _connection(self) -> None:
        """One connection from `enter` to its end, with a memory of its own."""
        token = await self._desk.token()
        # Compression would cost more than it saves on one machine; a proxy in between is not wanted.
        async with connect(self.url, logger=quiet, compression=None, proxy=None, open_timeout=5) as self.__socket:
            self.memory = Memory()
            try:
                for frame in (Enter(agent_token=token), Sit(), PostBlind()):
                    await self.send_to_table(frame)
                async for message in self.__socket:
                    self._hear(message)
            finally:
                self.__socket = None
                await self._end_turn()

    # Frames in ----------------------------------------------------------------------------------------------

    def _hear(self, message: str | bytes) -> None:
        try:
            frame = read_to_agent(message)
        except FrameError:
            self.tally.bad_frames += 1
            return
        self.memory.hear(frame)
        match frame:
            case YourTurn():
                self._begin_turn(frame)
            case Rejected(hand_number=None):
                log.warning("%s at %s was refused: %s", self.agent_id, self.table_id, frame.reason)
            case PlayerAction() | Rejected():
                self._settle(frame)
            case HandResult():
                self._note_result(frame)
            case _:
                pass

    def _note_result(self, frame: HandResult) -> None:
        """What the hand came to for this agent, if it was dealt in, for the ledger: everybody at the table heard it."""
        for seat in frame.seats:
            if seat.agent_id == self.agent_id:
                self._ledger.result(
                    Result(self.agent_id, self.table_id, frame.hand_number, seat.net, ended_at=datetime.now(UTC))
                )

    def _settle(self, frame: PlayerAction | Rejected) -> None:
        """The table's word on the open turn's action: its echo, or its refusal with the reason."""
        turn = self._open
        if turn is None or (frame.hand_number, frame.action_index) != (turn.key.hand_number, turn.key.action_index):
            return
        if isinstance(frame, Rejected):
            if turn.sent:
                turn.refusal = frame.reason
                turn.settled.set()
        elif frame.agent_id == self.agent_id and (frame.cause == "chosen" or turn.sent):
            if frame.cause != "chosen":  # ours came too late; the word on it may come after the next turn began
                turn.refusal = f"the table had acted already: {frame.cause}"
            turn.settled.set()

    # One turn -----------------------------------------------------------------------------------------------

    def _begin_turn(self, frame: YourTurn) -> None:
        """Starts deciding beside the reading of frames. The hand and the action index are the table's, never counted
        here; without a state there is nothing to decide about."""
        state = self.memory.state
        if state is None:
            self.tally.bad_frames += 1
            return
        asked = msgspec.to_builtins(frame)
        turn = _OpenTurn(
            key=TurnKey(self.agent_id, self.table_id, state["handNumber"], state["actionIndex"]),
            asked=asked,
            legal=legal_of(state, asked),
            ends_at=frame.turn_ends_at / 1000,
            deployment_id=state["deploymentId"],
        )
        playing = self._play(turn, self._playing, self._open)
        self._open, self._playing = turn, asyncio.create_task(playing)

    async def _play(self, turn: _OpenTurn, before: "asyncio.Task[None] | None", overtaken: _OpenTurn | None) -> None:
        """The whole of a turn. Cancelled while it decides (the table has gone on, or is gone), it has sent nothing,
        and the ledger says that it was asked, unless the whole play was ended."""
        thought, outcome = None, fallback(turn.legal, "the turn ended before the decision", sends_nothing=True)
        try:
            if before is not None:
                await _end(before, overtaken)
                before = overtaken = None  # a cancelled task keeps its frame: with them, every turn before it
            self._outbound.start_turn()
            with tracer.start_as_current_span(
                "invoke_agent",
                attributes=_span_attributes(turn.key),
                record_exception=False,  # its words may quote what it was about
                set_status_on_exception=False,
            ):
                thought, outcome = await self._decide(turn)
                await self._act(turn, outcome)
        finally:
            if turn.sent or not self._play_is_over:
                self._charge(turn, thought, outcome)
        if thought is not None and not outcome.is_fallback:
            await self._record(turn, thought, outcome)

    async def _decide(self, turn: _OpenTurn) -> tuple[Thought | None, Outcome]:
        """A decision in time, and never an exception: a fault of ours costs one decision, not the seat."""
        thought = None
        try:
            turn.deployment = await self._desk.deployment(turn.deployment_id)
            whispers = await self._desk.whispers()
            self.memory.whispers = whispers.said
            thought = think(self.memory, turn.asked, turn.deployment)
            turn.heard = whispers.fresh  # from here on they stand in its prompt
            built_at = time.monotonic()
            budget = turn.seconds_left() - self._min_turn - MARGIN_SECONDS
            outcome = await decide(thought, turn.legal, turn.deployment, timeout=min(MODEL_SECONDS, budget))
        except Exception as error:
            log.error("%s could not decide: %s", turn.key, without_words(error))
            return thought, fallback(turn.legal, f"agent error: {type(error).__name__}")
        if outcome.note:
            self.memory.note(outcome.note)
        wait = self._min_turn - (time.monotonic() - built_at)
        await asyncio.sleep(max(0.0, min(wait, turn.seconds_left() - MARGIN_SECONDS)))
        return thought, outcome

    async def _act(self, turn: _OpenTurn, outcome: Outcome) -> None:
        assert outcome.decision.action
        turn.sent = True
        with contextlib.suppress(ConnectionError):  # then nothing was sent, and the record says so
            await self.send_to_table(
                Action(
                    hand_number=turn.key.hand_number,
                    action_index=turn.key.action_index,
                    action=outcome.decision.action,
                    amount=outcome.decision.amount,
                )
            )

    async def _record(self, turn: _OpenTurn, thought: Thought, outcome: Outcome) -> None:
        """Hands the turn to the recorder once the table has answered, or after a second without an answer."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ECHO_SECONDS):
                await turn.settled.wait()
        completion, decision, deployment = outcome.completion, outcome.decision, turn.deployment
        assert completion is not None and deployment is not None
        if turn.refusal:
            self._outbound.refused(turn.refusal)
            self.tally.refused += 1
        self.tally.envelopes.add(thought.prompt.envelope_hash)
        self._recorder.record(
            Turn(
                key=turn.key,
                prompt=thought.prompt,
                response=completion.said,
                reasoning=completion.reasoning,
                knowledge=thought.built.knowledge,
                decision=self._outbound.take(),
                action=decision.action,
                amount=decision.chips,
                asked_action=decision.asked_action,
                asked_amount=decision.asked_amount,
                choice_source=outcome.choice_source,
                change=decision.change,
                model=completion.model,
                routing=completion.routing,
                agent_version_id=deployment.version_id,
                renderer=RENDERER,
                input_tokens=completion.input_tokens,
                output_tokens=completion.output_tokens,
                cost=completion.cost,
            )
        )

    def _charge(self, turn: _OpenTurn, thought: Thought | None, outcome: Outcome) -> None:
        """One row for the ledger, whatever the turn came to."""
        deployment = turn.deployment
        facts = outcome.completion or Completion(
            "",
            model=deployment.model.name if deployment else "",
            routing=deployment.model.routing if deployment else "",
        )
        self.tally.turns += 1
        self.tally.fallbacks += outcome.is_fallback
        self.tally.clamped += outcome.decision.change == "clamp"
        self._ledger.charge(
            Charge(
                agent_id=turn.key.agent_id,
                table_id=turn.key.table_id,
                hand_number=turn.key.hand_number,
                action_index=turn.key.action_index,
                played_at=datetime.now(UTC),
                agent_version_id=deployment.version_id if deployment else None,
                deployment_id=deployment.id if deployment else turn.deployment_id,
                model=facts.model,
                routing=facts.routing,
                input_tokens=facts.input_tokens,
                output_tokens=facts.output_tokens,
                cost=facts.cost,
                duration_ms=outcome.duration_ms,
                action=outcome.decision.action,
                amount=outcome.decision.chips,
                change=outcome.decision.change or "",
                note=thought.gap if thought else None,
                is_fallback=outcome.is_fallback,
                fallback_reason=outcome.fallback_reason,
                capture_outcome="none" if outcome.is_fallback else "pending",
                heard=() if outcome.is_fallback else turn.heard,
            )
        )

    async def _end_turn(self) -> None:
        """Ends the open turn with the connection: what was sent is recorded, what was not is given up."""
        if self._playing is not None:
            await _end(self._playing, self._open)
        self._open = self._playing = None


def _span_attributes(key: TurnKey) -> dict[str, str | int]:
    """Ids and counts, never content."""
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": key.agent_id,
        "agentlab.table_id": key.table_id,
        "agentlab.hand_number": key.hand_number,
        "agentlab.action_index": key.action_index,
    }


async def _end(playing: "asyncio.Task[None]", turn: _OpenTurn | None) -> None:
    """A turn that can get no answer any more: its record is made at once, or its deciding is given up."""
    if turn is not None and turn.sent:
        turn.settled.set()
    else:
        playing.cancel()
    await asyncio.wait({playing})
    if not playing.cancelled() and (error := playing.exception()):
        log.error("a turn failed: %s", without_words(error))
