"""A turn as a row of `agent_call_records`, and back: the same turn, byte for byte."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from capture.frozen import freeze, thaw
from capture.models import AgentCallRecord
from capture.prompt import bytes_text, text_bytes
from capture.turns import Turn, TurnError, decode_turn, encode_turn, freeze_decision, read_record

# What has a column of its own; everything else of a turn's record goes into `facts`.
_TEXTS = ("remainder", "response", "reasoning")
_FROZEN = ("knowledge", "decision")


def to_row(turn: Turn, *, agent_version_id: str | None, pinned_at: datetime) -> AgentCallRecord:
    """The row that keeps this turn, unsaved. Raises TurnError for a turn that cannot be written."""
    turn = replace(turn, agent_version_id=agent_version_id)
    record = read_record(encode_turn(turn, freeze_decision(turn))[0])
    key = turn.key
    texts = {name: _bytes(record.pop(name, None)) for name in _TEXTS}
    frozen = {name: record.pop(name, None) for name in _FROZEN}
    del record["key"]
    return AgentCallRecord(
        agent_id=key.agent_id,
        table_id=key.table_id,
        hand_number=key.hand_number,
        action_index=key.action_index,
        agent_version_id=None if agent_version_id is None else _searchable(agent_version_id),
        envelope=text_bytes(turn.prompt.envelope),
        envelope_hash=record.pop("envelope"),
        facts=freeze(record),
        model=_searchable(turn.model),
        captured_at=turn.captured_at,
        pinned_at=pinned_at,
        **texts,
        **frozen,
    )


def from_row(row: AgentCallRecord) -> Turn:
    """The kept turn. Raises TurnError where it cannot be rebuilt or its envelope does not have its hash."""
    try:
        record: dict[str, Any] = thaw(bytes(row.facts))
        record |= {name: bytes_text(bytes(data)) for name in _TEXTS if (data := getattr(row, name)) is not None}
        record |= {name: bytes(data) for name in _FROZEN if (data := getattr(row, name)) is not None}
        envelope = bytes_text(bytes(row.envelope))
    except (ValueError, TypeError):
        raise TurnError("the kept record cannot be decoded") from None
    record["key"] = [row.agent_id, row.table_id, row.hand_number, row.action_index]
    record["envelope"] = row.envelope_hash
    return decode_turn(record, envelope)


def _searchable(name: str) -> str:
    """As much of a name as a text column takes; the exact one is in `facts`."""
    return name.replace("\0", "?").encode("utf-8", "replace").decode()[:200]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text_bytes(text)
