"""What bytes are is read from the bytes."""

import re
from pathlib import Path

import pytest

from factory.media import PIXEL_LIMIT, image_sizes, image_type, recognise
from tests.conftest import SHARED_DATA

MEDIA = SHARED_DATA / "media"
ROW = re.compile(r"^\| (\S+/\S+) \| (\d+) \| \w+ \| (\S+) \| (.+?) \|", re.MULTILINE)
TABLE = ROW.findall((MEDIA / "PROVENANCE.md").read_text())

NO_PREVIEW = {
    "pillow/broken.png": "its header is not a PNG's",
    "pillow/zero_width.gif": "a width of 0",
    "pillow/decompression_bomb.gif": "a frame of 86 megapixels in 44 bytes",
    "made/png-50000x50000.png": "2.5 gigapixels",
    "made/gif-js.gif": "a height of 0: a script that begins as a GIF does",
    "made/jpeg-magic-only.jpg": "no header after three bytes",
}


def test_the_table_is_read_whole() -> None:
    assert {name for name, *_ in TABLE} == {
        str(path.relative_to(MEDIA)) for path in MEDIA.rglob("*") if path.suffix != ".md" and path.is_file()
    }


@pytest.mark.parametrize(("name", "size", "magic", "decode"), TABLE)
def test_each_file_is_what_its_first_bytes_say(name: str, size: str, magic: str, decode: str) -> None:  # FA-5 AI-6
    data = (MEDIA / name).read_bytes()
    assert len(data) == int(size)
    assert image_type(data) == (None if magic == "-" else magic)
    media = recognise(data)
    if magic == "-":
        assert media.preview_kind != "image"
        return
    assert media.media_type == magic
    assert media.preview_kind == ("none" if name in NO_PREVIEW else "image"), NO_PREVIEW.get(name)
    if measured := re.match(r"\w+ (\d+)x(\d+) .*ok", decode):
        assert image_sizes(data, magic)[0] == (int(measured[1]), int(measured[2]))


@pytest.mark.parametrize("name", ["svg/edit_icon.svg", "made/svg-script.svg", "made/html-named.png", "made/ansi.txt"])
def test_markup_is_text_and_never_an_image(name: str) -> None:  # AI-6
    media = recognise((MEDIA / name).read_bytes())
    assert (media.media_type, media.preview_kind) == ("text/plain", "text")


@pytest.mark.parametrize(
    "name", ["made/latin1.txt", "made/utf16le-bom.txt", "made/nul-in-text.txt", "pillow/hopper.bmp"]
)
def test_what_is_not_utf8_text_is_captured_without_a_preview(name: str) -> None:  # FA-5
    media = recognise((MEDIA / name).read_bytes())
    assert (media.media_type, media.preview_kind) == ("application/octet-stream", "none")


def test_nothing_is_an_empty_text() -> None:  # FA-5
    assert recognise(b"").preview_kind == "text"


@pytest.mark.parametrize("path", sorted((MEDIA / "pillow").glob("hopper.*")), ids=lambda path: path.suffix)
def test_a_header_cut_anywhere_is_no_crash_and_no_image_of_a_made_up_size(path: Path) -> None:  # AI-6
    data = path.read_bytes()
    whole = {(128, 128)}
    for length in range(400):
        media = recognise(data[:length])
        if media.preview_kind == "image":
            assert set(image_sizes(data[:length], media.media_type)) <= whole


def test_the_pixel_limit_holds_for_every_frame() -> None:  # AI-6
    small, big = b"\x10\x00\x10\x00", b"\xff\xff\xff\xff"
    gif = b"GIF89a" + small + b"\0\0\0" + b"".join(b"\x2c\0\0\0\0" + size + b"\0\x02\x01\0\0" for size in (small, big))
    assert image_sizes(gif + b";", "image/gif") == [(16, 16), (16, 16), (65535, 65535)]
    assert PIXEL_LIMIT < 65535 * 65535
    assert recognise(gif + b";").preview_kind == "none"
