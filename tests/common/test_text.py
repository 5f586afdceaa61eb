"""Long texts as they are shown: inert, nothing invisible, and the exact text can be had back."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.common.text import (
    CLIPPED_BYTES,
    ON_DEMAND_BYTES,
    TextBlock,
    clip,
    contains,
    encoded,
    first_line,
    in_json,
    on_a_terminal,
    plain,
    visible,
)

CHIP = re.compile(r'<span class="ctl" title="U\+([0-9A-F]+)">[^<]*</span>')
# Any text a model may return: lone surrogates, controls and direction marks come often.
ANY_TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from("\x00\r\n\t<>&\"'\u202e\u200d\ud83d\ue000a"))


def exact(shown: str) -> str:
    """The text that `visible` was given: every chip names its character."""
    pieces = CHIP.split(re.sub(r"</?mark>", "", shown))
    return "".join(chr(int(piece, 16)) if at % 2 else _unescape(piece) for at, piece in enumerate(pieces))


def _unescape(text: str) -> str:
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'"), ("&amp;", "&")):
        text = text.replace(entity, character)
    return text


@given(ANY_TEXT, ANY_TEXT)
def test_removing_the_marks_gives_the_text_back(text: str, find: str) -> None:  # CAP-9
    assert exact(visible(text)) == text
    assert exact(visible(text, find)) == text


@given(ANY_TEXT)
def test_what_is_shown_is_inert_and_can_be_sent(text: str) -> None:  # SF-2
    shown = visible(text)
    shown.encode()  # a lone surrogate would raise before a byte left
    assert not re.search(r"<(?!/?span)", CHIP.sub("", shown))
    assert "\0" not in shown
    assert "\r" not in shown


@pytest.mark.parametrize(
    ("character", "sign", "code"),
    [
        ("\0", "␀", "U+0000"),
        ("\r", "␍", "U+000D"),
        ("\x1b", "␛", "U+001B"),
        ("\u202e", "RLO", "U+202E"),
        ("\u2066", "LRI", "U+2066"),
        ("\ud83d", "\\ud83d", "U+D83D"),
        ("\u200b", "ZWSP", "U+200B"),
        ("\ufeff", "BOM", "U+FEFF"),
        ("\U000e0041", "\\U000e0041", "U+E0041"),
        ("\ufffe", "\\ufffe", "U+FFFE"),
    ],
)
def test_each_odd_character_is_named(character: str, sign: str, code: str) -> None:  # CAP-9
    assert visible(character) == f'<span class="ctl" title="{code}">{sign}</span>'
    assert plain(character) == sign


def test_ordinary_text_of_every_script_is_left_alone() -> None:
    text = "call $5, raise $10\n\tход игры · 你好 · می‌خواهم · 👩‍👩‍👧 · ♠︎"
    assert visible(text) == text
    assert plain(text) == text


@given(ANY_TEXT)
def test_foreign_words_stay_on_their_line_of_a_terminal(text: str) -> None:  # SF-4
    said = on_a_terminal(text)
    assert len(said.splitlines()) <= 1
    assert plain(said) == said
    assert not re.search("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", said)


@given(ANY_TEXT)
def test_json_without_odd_characters_says_the_same(text: str) -> None:  # CAP-9
    written = in_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(written) == json.loads(json.dumps({text: [text]}))
    assert plain(written) == written
    written.encode()


def test_json_keeps_the_letters_of_every_script() -> None:
    assert in_json('"ход 你 🂡 \u202e\ud83e\U000e0041"') == '"ход 你 🂡 \\u202e\\ud83e\\udb40\\udc41"'


def test_a_joiner_between_ascii_letters_is_odd() -> None:
    assert "ZWJ" in visible("fo\u200dld")


def test_markup_is_shown_literally() -> None:  # SF-2
    assert visible("<script>alert(1)</script> ![a](http://10.0.0.1/x)") == (
        "&lt;script&gt;alert(1)&lt;/script&gt; ![a](http://10.0.0.1/x)"
    )


def test_a_search_marks_what_it_finds_without_regard_to_case() -> None:
    assert visible("Ход игры, ХОД", "ход") == "<mark>Ход</mark> игры, <mark>ХОД</mark>"
    assert visible("a.c abc", "a.c") == "<mark>a.c</mark> abc"
    assert contains("RAISE", "raise")
    assert not contains("anything", "")


def test_the_first_line_is_the_first_that_says_something() -> None:
    assert first_line("\n\n  Two overcards.  \nmore") == "Two overcards."
    assert first_line("x" * 100) == "x" * 79 + "…"
    assert first_line(" \n ") == ""


@given(ANY_TEXT, st.integers(0, 30))
def test_clipping_keeps_whole_characters_within_the_limit(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    assert text.startswith(clipped)
    assert len(encoded(clipped)) <= limit
    if clipped != text:
        assert len(encoded(text[: len(clipped) + 1])) > limit


def block(text: str, **fields: object) -> TextBlock:
    return TextBlock("t1-said", "Response", text, part_url="/part?x=1", **fields)  # type: ignore[arg-type]


def test_a_short_text_is_in_the_page_and_a_longer_one_is_fetched() -> None:  # VW-10
    assert not block("x" * ON_DEMAND_BYTES).fetched
    assert block("x" * (ON_DEMAND_BYTES + 1)).fetched


def test_a_text_without_a_page_of_its_own_is_never_left_out() -> None:
    assert not TextBlock("a", "Response", "x" * 50_000).fetched


def test_what_a_search_finds_is_open_and_in_the_page() -> None:
    found = block("x" * 30_000 + "needle", find="NEEDLE")
    assert found.is_open
    assert not found.fetched
    assert "<mark>needle</mark>" in found.html


def test_a_very_long_text_is_shown_in_part_until_all_is_asked_for() -> None:
    text = "é" * CLIPPED_BYTES
    assert block(text).clipped
    assert block(text).html == "é" * (ON_DEMAND_BYTES // 2)
    assert block(text).all_url == "/part?x=1&all=1"
    assert block(text, whole=True).html == text


def test_a_block_says_nothing_of_its_text_in_a_log() -> None:
    assert "secret" not in repr(block("secret"))
