"""Every frame that crosses a table's WebSocket, one struct each, with the names on the wire.

A frame is one JSON object in a text message; `type` names it. Python names are snake_case, wire names camelCase.
Chips and indices are integers. Amounts of a raise are *raise-to* totals for the street. Cards are rank and suit,
"Ah", "Tc". Times are whole milliseconds since 1970-01-01 UTC.

`to_table` is what an agent may say, read strictly: unknown fields, floats, NaN, wrong types and long frames are
refused. `to_agent` is what the table says.
"""

from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec

MAX_FRAME_TO_TABLE = 4096
"""Bytes. The longest honest frame is an `enter` of about 700."""
MAX_CHIPS = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_CHIPS)]
Move: TypeAlias = Literal["fold", "check", "call", "raise"]
Street: TypeAlias = Literal["preflop", "flop", "turn", "river", "over"]
Status: TypeAlias = Literal["active", "folded", "all_in", "out"]
Cause: TypeAlias = Literal["chosen", "timeout", "disconnected", "left"]


class FrameError(ValueError):
    """A message that is no frame: `code` is one word ("malformed", "too_large"), the text says what is wrong."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class _FromAgent(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="type",
):
    pass


class Enter(_FromAgent, frozen=True, kw_only=True, tag="enter"):
    """First frame of a connection: who this is."""

    agent_token: Annotated[str, msgspec.Meta(max_length=2048)]


class Sit(_FromAgent, frozen=True, kw_only=True, tag="sit"):
    """Asks for a seat, or takes one's own again."""


class Stand(_FromAgent, frozen=True, kw_only=True, tag="stand"):
    """Leaves the game: what is left of this hand is played safely at once, and no further hand is dealt in."""


class PostBlind(_FromAgent, frozen=True, kw_only=True, tag="post_blind"):
    """Standing consent to pay blinds and antes whenever they fall to this seat; without it no hand is dealt in."""


class Action(_FromAgent, frozen=True, kw_only=True, tag="action"):
    """The answer to one `your_turn`, which it names by hand and action index."""

    hand_number: Count
    action_index: Count
    action: Move
    amount: Count | None = None
    """The raise-to total; null for everything but a raise."""


class _FromTable(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    pass


class SeatView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One seat as a viewer may see it."""

    seat: int
    agent_id: str
    stack: int
    """Chips behind, without what is bet on this street."""
    bet: int
    """Chips bet on this street."""
    status: Status
    """`out`: not dealt into this hand."""
    connected: bool
    cards: list[str] | None = None
    """Shown at showdown; null until then."""


class PotView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pot of collected chips, and the seats that can still win it."""

    amount: int
    seats: list[int]


class GameState(_FromTable, frozen=True, kw_only=True, tag="game_state"):
    """The table as one viewer sees it. It replaces every earlier one."""

    table_id: str
    hand_number: Count
    """0 before the table's first hand."""
    action_index: Count
    """Index of the decision that is due, counted by the table from 0 in each hand; blinds are no decisions."""
    street: Street
    board: list[str]
    pot: int
    """All chips in the middle, this street's bets included."""
    pots: list[PotView]
    """Main pot first, then side pots: collected chips alone."""
    current_bet: int
    """The street total that a seat must reach to stay in (the whole big blind before the flop, even a short one)."""
    button: int | None
    small_blind: int
    big_blind: int
    ante: int
    seats: list[SeatView]
    to_act: int | None
    """The seat whose turn it is."""
    your_seat: int | None = None
    hole_cards: list[str] | None = None
    """The viewer's own; null where it has none."""
    to_call: int | None = None
    """Chips the viewer would add by calling, never more than its stack; null while it is not its turn."""
    deployment_id: int | None = None
    """Which of the viewer's deployments plays this hand."""


class ChipRange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Least and most raise-to total. Equal where only all-in is left."""

    min: int
    max: int


class YourTurn(_FromTable, frozen=True, kw_only=True, tag="your_turn"):
    """Asks for a decision; the latest `game_state` names its hand and action index."""

    legal_actions: list[Move]
    """`fold` is missing where checking is free."""
    chip_range: ChipRange | None
    """Null where `raise` is not legal."""
    turn_ends_at: int
    """Milliseconds since 1970-01-01 UTC. Later answers are refused."""


class PlayerAction(_FromTable, frozen=True, kw_only=True, tag="player_action"):
    """What a seat did, sent to everyone, the seat itself included."""

    hand_number: int
    action_index: int
    seat: int
    agent_id: str
    street: Street
    action: Move
    amount: int | None
    """Raise: the street total reached. Call: the chips added. Otherwise null."""
    all_in: bool
    cause: Cause
    """`chosen`, or why the table took the safe action (check where free, else fold) in the seat's place."""


class SeatResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a hand ended for a seat that was dealt in: net = won + returned - put in."""

    seat: int
    agent_id: str
    net: int
    won: int
    """Chips from pots, own ones included."""
    returned: int
    """The part of an own bet that nobody called. It is not won."""
    stack: int
    status: Status
    cards: list[str] | None
    """Shown at showdown, else null."""


class PotResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pot and who got how much of it, seat number to chips."""

    amount: int
    shares: dict[int, int]


class HandResult(_FromTable, frozen=True, kw_only=True, tag="hand_result"):
    """The end of a hand."""

    table_id: str
    hand_number: int
    action_index: int
    """How many decisions the hand had."""
    board: list[str]
    showdown: bool
    pots: list[PotResult]
    seats: list[SeatResult]


class Rejected(_FromTable, frozen=True, kw_only=True, tag="rejected"):
    """A frame that the table did not take, by the hand and action index that it named (null where it named none)."""

    hand_number: int | None
    action_index: int | None
    reason: str
    """A code of one word, a colon, and a sentence: "late: that turn is over"."""


ToTable: TypeAlias = Enter | Sit | Stand | PostBlind | Action
ToAgent: TypeAlias = GameState | YourTurn | PlayerAction | HandResult | Rejected

_encoder = msgspec.json.Encoder()
_to_table = msgspec.json.Decoder(ToTable)
_to_agent = msgspec.json.Decoder(ToAgent)


def encode(frame: ToTable | ToAgent) -> str:
    """The frame as the text of one WebSocket message."""
    return _encoder.encode(frame).decode()


def read_to_table(message: str | bytes) -> ToTable:
    """What an agent said. Raises FrameError, whose text quotes nothing of the message."""
    size = len(message.encode(errors="surrogatepass")) if isinstance(message, str) else len(message)
    if size > MAX_FRAME_TO_TABLE:
        raise FrameError("too_large", f"a frame has at most {MAX_FRAME_TO_TABLE} bytes")
    return _read(_to_table, message)


def read_to_agent(message: str | bytes) -> ToAgent:
    """What the table said. Fields that this version does not know are passed over. Raises FrameError."""
    return _read(_to_agent, message)


_Frame = TypeVar("_Frame")


def _read(decoder: "msgspec.json.Decoder[_Frame]", message: str | bytes) -> _Frame:
    try:
        return decoder.decode(message)
    except msgspec.ValidationError as error:
        raise FrameError("malformed", _without_values(str(error))) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise FrameError("malformed", "not a JSON object in UTF-8") from None


def _without_values(text: str) -> str:
    """msgspec's message; where that would quote the sender, only what is wrong and where."""
    if text.startswith("Invalid"):
        return "unknown value" + text[text.rindex(" - at ") :]
    return "unknown field" if "unknown field" in text else text
