"""The input packet of one attempt: what this dispatch added, what the session held already, what was kept of it."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from factory.calls import AgentCall, Attachment, Included
from factory.items import CaptureStatus, PacketItem
from factory.lineage import Lineage
from factory.resolve import ResolvedRequest, display_path
from factory.snapshots import (
    BOUND_NAMES,
    MAX_FILES,
    BoundReached,
    CaptureFailed,
    Deadline,
    Folder,
    Found,
    Kept,
    open_folder,
    walk,
)

PACKET_VERSION = 1
Coverage = Literal["complete", "partial", "not_recorded"]


@dataclass(frozen=True, slots=True)
class AgentInputPacket:
    """What an attempt was given, as far as it is known.

    Counts are of this dispatch's own inputs; what was inherited is listed beside them and not counted. Where the
    listing could not be finished, `declared` and `omitted` are None: unknown, not zero.
    """

    version: int | None
    coverage: Coverage
    declared: int | None
    captured: int | None
    omitted: int | None
    request: ResolvedRequest
    lineage: Lineage
    items: tuple[PacketItem, ...]


def capture_attempt_inputs(
    call: AgentCall,
    lineage: Lineage,
    *,
    attempt_id: str,
    folder: Folder,
    deadline: Deadline | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AgentInputPacket:
    """Record every explicit input of one send, keeping its bytes in `folder` as far as the bounds allow.

    Never raises for what it finds: each gap is a row with its reason, and the request to the model is untouched.
    """
    capture = _Capture(attempt_id, folder, deadline or Deadline(), now)
    return capture.packet(call, lineage)


class _Capture:
    def __init__(self, attempt_id: str, folder: Folder, deadline: Deadline, now: Callable[[], datetime]) -> None:
        self._attempt_id, self._folder, self._deadline, self._now = attempt_id, folder, deadline, now
        self._items: list[PacketItem] = []
        self._incomplete: str | None = None

    def packet(self, call: AgentCall, lineage: Lineage) -> AgentInputPacket:
        try:
            for item, data in _held(call):
                self._admit_one_more()
                self._keep(item, lambda seq, data=data: self._folder.keep_bytes(seq, data))  # type: ignore[misc]
            if call.context_root is not None:
                self._context(call.context_root)
        except BoundReached as bound:
            self._incomplete = BOUND_NAMES[bound.bound]
        own = tuple(self._items)
        self._inherit(lineage.inherited)
        if self._incomplete:
            self._sentinel(self._incomplete, call.context_root)
        return self._counted(call.request, lineage, own)

    def _counted(self, request: ResolvedRequest, lineage: Lineage, own: tuple[PacketItem, ...]) -> AgentInputPacket:
        captured = sum(item.capture_status == "captured" for item in own)
        complete = captured == len(own) and not self._incomplete
        return AgentInputPacket(
            version=PACKET_VERSION,
            coverage="complete" if complete else "partial",
            declared=None if self._incomplete else len(own),
            captured=captured,
            omitted=None if self._incomplete else len(own) - captured,
            request=request,
            lineage=lineage,
            items=tuple(self._items),
        )

    def _context(self, path: str) -> None:
        try:
            root = open_folder(path)
        except (OSError, ValueError) as error:
            gone = isinstance(error, FileNotFoundError)
            why = (
                "no longer there" if gone else f"folder cannot be listed: {getattr(error, 'strerror', 'invalid path')}"
            )
            self._not_kept(_context_item(path, (), is_folder=True), "missing" if gone else "unreadable", why)
            self._incomplete = "the folder could not be listed"
            return
        try:
            with closing(walk(root, self._deadline)) as found:
                self._files(path, found)
        finally:
            os.close(root)

    def _files(self, path: str, found: Iterator[Found]) -> None:
        for one in found:
            self._admit_one_more()
            item = _context_item(path, one.parts, one.is_folder)
            if one.problem is None:
                self._keep(
                    item,
                    lambda seq, one=one: self._folder.keep_file(  # type: ignore[misc]
                        seq, one.folder, one.parts[-1], self._deadline
                    ),
                )
                continue
            self._not_kept(item, "unreadable", one.problem)
            if one.is_folder:
                self._incomplete = "a folder could not be listed"

    def _admit_one_more(self) -> None:
        if len(self._items) >= MAX_FILES:
            raise BoundReached("files")
        self._deadline.check()

    def _keep(self, item: PacketItem, keep: Callable[[int], Kept]) -> None:
        seq = len(self._items) + 1
        try:
            kept = keep(seq)
        except CaptureFailed as failure:
            self._not_kept(item, failure.status, failure.detail)
            return
        except BoundReached as bound:
            self._not_kept(item, "limit_exceeded", f"more than {BOUND_NAMES[bound.bound]}")
            raise
        self._items.append(
            replace(
                item,
                seq=seq,
                snapshot_path=f"{self._attempt_id}/{seq}",
                media_type=kept.media.media_type,
                preview_kind=kept.media.preview_kind,
                size_bytes=kept.size,
                sha256=kept.sha256,
                capture_status="captured",
                artifact_status="available",
                detail=kept.detail,
                captured_at=self._now(),
            )
        )

    def _not_kept(self, item: PacketItem, status: CaptureStatus, detail: str) -> None:
        self._items.append(replace(item, seq=len(self._items) + 1, capture_status=status, detail=detail))

    def _inherit(self, items: Iterable[PacketItem]) -> None:
        for item in items:
            self._items.append(replace(item, seq=len(self._items) + 1))

    def _sentinel(self, bound: str, root: str | None) -> None:
        item = _context_item(root or "", ())
        self._not_kept(
            replace(item, label="more inputs may exist", source_path=root),
            "enumeration_incomplete",
            f"stopped: {bound}",
        )


def _held(call: AgentCall) -> Iterator[tuple[PacketItem, bytes]]:
    """The inputs whose bytes are in our hands: the prompt file, what the message includes, the attachments."""
    request = call.request
    if request.source_kind == "prompt_file" and call.sends_task:
        name = os.path.basename(request.path or "")  # noqa: PTH119
        yield _item(display_path(name), "prompt_file", "inline", request.path), request.data
    for included in call.included:
        yield _included_item(included), included.data
    for attachment in call.attachments:
        yield _attachment_item(attachment), attachment.data


def _included_item(included: Included) -> PacketItem:
    return _item(included.label, included.source_kind, "inline", included.path)


def _attachment_item(attachment: Attachment) -> PacketItem:
    return _item(attachment.label, "explicit_attachment", "provider_attachment", attachment.path)


def _context_item(root: str, parts: tuple[str, ...], is_folder: bool = False) -> PacketItem:
    label = display_path("/".join(parts) or os.path.basename(root)) + ("/" if is_folder else "")  # noqa: PTH119
    return _item(label, "context_handoff", "path_reference", "/".join((root.rstrip("/"), *parts)) or "/")


def _item(label: str, source: str, delivery: str, path: str | None) -> PacketItem:
    return PacketItem(0, label, source, delivery, path)  # type: ignore[arg-type]
