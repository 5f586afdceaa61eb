"""Which turn of a reused session a send is, what came before it, and what it corrects."""

from dataclasses import dataclass, field, replace

from factory.calls import SendKind
from factory.items import PacketItem


@dataclass(frozen=True, slots=True)
class Lineage:
    """`turn_index` is one-based within the session. The previous turn and the retried attempt are two facts: every
    later turn has the first, only a correction has the second. `inherited` are the inputs that earlier turns put
    into the session."""

    turn_index: int = 1
    previous_turn_attempt_id: str | None = None
    retry_of_attempt_id: str | None = None
    inherited: tuple[PacketItem, ...] = ()


@dataclass(slots=True)
class SessionTurns:
    """The turns of one model session, in the order in which they were sent."""

    _last: str | None = None
    _phase: str | None = None
    _count: int = 0
    _inherited: list[PacketItem] = field(default_factory=list)

    def next(self, phase: str, send_kind: SendKind) -> Lineage:
        """The lineage of the turn about to be sent. A correction corrects the turn before it, of its own phase."""
        if send_kind != "initial" and phase != self._phase:
            raise ValueError(f"a {send_kind} of {phase} cannot follow {self._phase}")
        return Lineage(
            turn_index=self._count + 1,
            previous_turn_attempt_id=self._last,
            retry_of_attempt_id=None if send_kind == "initial" else self._last,
            inherited=tuple(self._inherited),
        )

    def sent(self, attempt_id: str, phase: str, items: tuple[PacketItem, ...]) -> None:
        """The turn has been sent: what its message carried is history for every later turn."""
        self._last, self._phase = attempt_id, phase
        self._count += 1
        self._inherited += [
            replace(
                item,
                delivery_mode="session_history",
                capture_status="not_applicable",
                artifact_status="never_captured",
                preview_kind="none",
                snapshot_path=None,
                captured_at=None,
                detail=f"sent on turn {self._count} ({phase})",
            )
            for item in items
            if item.delivery_mode in {"inline", "provider_attachment"}
        ]
