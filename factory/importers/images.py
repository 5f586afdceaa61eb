"""Attachments that lie inside a message as base64: their size and hash, without keeping their bytes."""

import base64
import binascii
import hashlib

from factory.items import PacketItem

DERIVED = "derived from the recorded message; the bytes were not kept"


def attached(
    seq: int, label: str, data: str, declared_type: str | None, *, source_path: str | None = None
) -> PacketItem:
    """An item that the provider got as an attachment. Size and hash are known where `data` is valid base64."""
    try:
        raw: bytes | None = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raw = None
    return PacketItem(
        seq=seq,
        label=label,
        source_kind="explicit_attachment",
        delivery_mode="provider_attachment",
        source_path=source_path,
        media_type=(declared_type or "")[:80] or None,
        size_bytes=len(raw) if raw is not None else None,
        sha256=hashlib.sha256(raw).hexdigest() if raw is not None else None,
        detail=DERIVED if raw is not None else "the recorded data is not valid base64",
    )


def split_data_uri(uri: str) -> tuple[str | None, str]:
    """`data:image/png;base64,AAAA` as its media type and its base64 text; other text has no type."""
    if not uri.startswith("data:") or "," not in uri:
        return None, uri
    head, data = uri[5:].split(",", 1)
    return head.split(";")[0] or None, data
