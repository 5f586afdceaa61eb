"""What bytes really are, from the bytes alone: never from a name, never from what somebody declared."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

PIXEL_LIMIT = 40_000_000
"""More pixels than this and a browser's decoder would need hundreds of megabytes: the image is not previewed."""

PreviewKind = Literal["text", "image", "none"]
TEXT, BINARY = "text/plain", "application/octet-stream"
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass(frozen=True, slots=True)
class Media:
    media_type: str
    preview_kind: PreviewKind


def recognise(data: bytes) -> Media:
    """The media type (one of IMAGE_TYPES, TEXT or BINARY) and what may be previewed of it.

    An image is previewed where its own header gives a size from 1 to PIXEL_LIMIT pixels; nothing is decoded.
    Text is UTF-8 without NUL; SVG, HTML and JSON are text.
    """
    if image := image_type(data):
        return Media(image, "image" if _previewable(data, image) else "none")
    if b"\0" in data:
        return Media(BINARY, "none")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return Media(BINARY, "none")
    return Media(TEXT, "text")


def image_type(data: bytes) -> str | None:
    """The one of IMAGE_TYPES that the first twelve bytes name."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_sizes(data: bytes, media_type: str) -> list[tuple[int, int]]:
    """Every (width, height) that the headers declare: a GIF's screen and each of its frames, else one.

    Empty where the headers cannot be read. Formats: PNG 11.2.2 IHDR, ITU T.81 B.2.2 frame header, GIF89a 18 and
    20, RFC 9649 2.5 to 2.7.
    """
    try:
        return list(_SIZES[media_type](data))
    except IndexError:
        return []


def _previewable(data: bytes, media_type: str) -> bool:
    sizes = image_sizes(data, media_type)
    return bool(sizes) and all(1 <= width * height <= PIXEL_LIMIT for width, height in sizes)


def _big(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + size], "big")


def _little(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + size], "little")


def _png(data: bytes) -> Iterator[tuple[int, int]]:
    if data[12:16] == b"IHDR":
        yield _big(data, 16, 4), _big(data, 20, 4)


_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_NO_LENGTH = frozenset(range(0xD0, 0xD9)) | {0x01}


def _jpeg(data: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while True:
        while data[at] != 0xFF:
            at += 1
        while data[at] == 0xFF:
            at += 1
        marker = data[at]
        at += 1
        if marker in _NO_LENGTH:
            continue
        if marker in _FRAME_HEADERS:
            yield _big(data, at + 5, 2), _big(data, at + 3, 2)
            return
        if marker in {0xD9, 0xDA}:  # the picture begins or ends without a frame header
            return
        at += max(_big(data, at, 2), 2)


def _gif(data: bytes) -> Iterator[tuple[int, int]]:
    yield _little(data, 6, 2), _little(data, 8, 2)
    at = 13 + _colour_table(data[10])
    while at < len(data) and data[at] != 0x3B:
        block = data[at]
        if block == 0x2C:
            yield _little(data, at + 5, 2), _little(data, at + 7, 2)
            at += 11 + _colour_table(data[at + 9])
        elif block == 0x21:
            at += 2
        else:
            return
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1


def _colour_table(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _webp(data: bytes) -> Iterator[tuple[int, int]]:
    chunk = data[12:16]
    if chunk == b"VP8X":
        yield _little(data, 24, 3) + 1, _little(data, 27, 3) + 1
    elif chunk == b"VP8L":
        bits = _little(data, 21, 4)
        yield (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif chunk == b"VP8 ":
        yield _little(data, 26, 2) & 0x3FFF, _little(data, 28, 2) & 0x3FFF


_SIZES = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}
