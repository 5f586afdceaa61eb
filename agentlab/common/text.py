"""Long text as it is shown: nothing of it is markup, nothing odd in it is invisible, and its size is said.

A browser does not show exact bytes (it drops NUL, turns CRLF into LF, hides direction marks), so what the page shows
is a display form; `Copy` and `Raw` read the stored text itself.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

# Above this a part is fetched when it is opened: forty turns of a hand then still load at once (PF-4's 250 KB).
ON_DEMAND_BYTES = 20_000
# Above this only the first ON_DEMAND_BYTES are shown, with "Show all" and "Download": a browser lays out a
# megabyte of wrapped monospace text in seconds, and nobody meant to wait for it.
CLIPPED_BYTES = 200_000

_NAMED = {
    0x7F: "␡", 0x85: "NEL", 0xAD: "SHY", 0x061C: "ALM", 0x180E: "MVS", 0x200B: "ZWSP", 0x200C: "ZWNJ", 0x200D: "ZWJ",
    0x200E: "LRM", 0x200F: "RLM", 0x2028: "LS", 0x2029: "PS", 0x202A: "LRE", 0x202B: "RLE", 0x202C: "PDF",
    0x202D: "LRO", 0x202E: "RLO", 0x2060: "WJ", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI",
    0xFEFF: "BOM", 0x115F: "HCF", 0x1160: "HJF", 0x3164: "HF", 0xFFA0: "HHF",
}  # fmt: skip
# Controls (tab and newline excepted), direction and other invisible format characters, fillers, lone surrogates and
# noncharacters. The two joiners are ordinary between letters of many scripts and inside emoji, odd next to ASCII.
_NONCHARACTERS = "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\ufdd0-\ufdef\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    f"\U000e0000-\U000e007f{_NONCHARACTERS}]"
    "|[\u200c\u200d](?![^\x00-\x7f])|(?<![^\x00-\x7f])[\u200c\u200d]"
)


def _sign(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code in _NAMED:
        return _NAMED[code]
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _chip(match: re.Match[str]) -> str:
    character = match.group()
    return f'<span class="ctl" title="U+{ord(character):04X}">{_sign(character)}</span>'


def _chips(text: str) -> str:
    return _ODD.sub(_chip, escape(text))


def visible(text: str, find: str = "") -> SafeString:
    """The text as HTML: escaped, each odd character as `<span class="ctl" title="U+202E">RLO</span>`, and what
    `find` matches (letter case aside) in `<mark>`. Each chip's title names the one character it stands for, so the
    exact text can be had back by removing the marks."""
    if not find:
        return mark_safe(_chips(text))  # noqa: S308 - escaped above
    pieces = []
    end = 0
    for match in re.finditer(re.escape(find), text, re.IGNORECASE):
        pieces += [_chips(text[end : match.start()]), f"<mark>{_chips(match.group())}</mark>"]
        end = match.end()
    return mark_safe("".join(pieces) + _chips(text[end:]))  # noqa: S308 - every piece is escaped


def plain(text: str) -> str:
    """The text with its odd characters as their signs and no markup: for attributes, titles and the live region."""
    return _ODD.sub(lambda match: _sign(match.group()), text)


def on_a_terminal(text: str) -> str:
    """Somebody else's words in a line that a command prints: nothing in them moves the cursor, turns the direction of
    what follows or begins a line."""
    return plain(text).replace("\n", "␊")


def in_json(written: str) -> str:
    """JSON that says the same, with its odd characters as `\\u` escapes; ordinary letters of every script stay."""
    return _ODD.sub(lambda match: json.dumps(match.group())[1:-1], written)


def contains(text: str, find: str) -> bool:
    """Does a search for `find` mark anything in the text?"""
    return bool(find) and re.search(re.escape(find), text, re.IGNORECASE) is not None


def encoded(text: str) -> bytes:
    """The text's bytes: UTF-8, lone surrogates kept as three bytes each (then it is not valid UTF-8)."""
    return text.encode("utf-8", "surrogatepass")


def first_line(text: str, limit: int = 80) -> str:
    """The first line that says something, at most `limit` characters of it."""
    line = next(_lines(text), "")
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _lines(text: str) -> Iterator[str]:
    # Only the beginning is looked at: the first line of a megabyte of spaces is not worth finding.
    return (line.strip() for line in text[:2000].split("\n") if line.strip())


def clip(text: str, limit: int) -> str:
    """The longest beginning of the text that is at most `limit` bytes."""
    if len(text) <= limit // 4:
        return text
    head = encoded(text[: limit + 1])
    if len(head) <= limit:
        return text
    cut = limit
    while head[cut] & 0xC0 == 0x80:  # never inside a character
        cut -= 1
    return head[:cut].decode("utf-8", "surrogatepass")


@dataclass(frozen=True, repr=False)
class TextBlock:
    """One long text for `parts/_text.html`: where it stands on the page, and where its exact bytes are had.

    `id` is the anchor. `raw_url` gives the exact stored text (for Raw and Copy; without it there are no tools).
    With `part_url` (a page that shows this block alone, and its fragment to htmx) a text over `inline_bytes`, or any
    with `lazy`, is fetched on opening, or, if it is open, when it comes into view; a text over CLIPPED_BYTES is shown
    to ON_DEMAND_BYTES unless `whole`. `note` follows the size in the heading, whose `level` is 2 or 3, or 0 for a
    label that is no heading; `find` is highlighted and opens it.
    It has no repr: a fault in a template would otherwise write its text into the server's log.
    """

    id: str
    label: str
    text: str
    raw_url: str = ""
    part_url: str = ""
    note: str = ""
    subject: str = ""
    find: str = ""
    open: bool = False
    lazy: bool = False
    whole: bool = False
    level: int = 3
    inline_bytes: int = ON_DEMAND_BYTES
    bytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", len(encoded(self.text)))

    @property
    def found(self) -> bool:
        return contains(self.text, self.find)

    @property
    def is_open(self) -> bool:
        return self.open or self.found

    @property
    def fetched(self) -> bool:
        """Is the text left out of the page, to be loaded when it is opened?"""
        return bool(self.part_url) and not self.found and (self.lazy or self.bytes > self.inline_bytes)

    @property
    def clipped(self) -> bool:
        return self.bytes > CLIPPED_BYTES and not self.whole

    @property
    def html(self) -> SafeString:
        return visible(clip(self.text, ON_DEMAND_BYTES) if self.clipped else self.text, self.find)

    @property
    def first_line(self) -> SafeString:
        return visible(first_line(self.text))

    @property
    def about(self) -> str:
        """What a screen reader hears after “Copy”: which text of which turn."""
        return plain(f"{self.label}, {self.subject}" if self.subject else self.label)

    @property
    def all_url(self) -> str:
        joint = "&" if "?" in self.part_url else "?"
        return f"{self.part_url}{joint}all=1" if self.part_url else ""

    @property
    def shown_bytes(self) -> int:
        return ON_DEMAND_BYTES if self.clipped else self.bytes
