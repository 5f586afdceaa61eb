"""The exact prompt, in the two parts that it is stored in."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.prompt import Prompt, bytes_text, text_bytes

any_text = st.text(st.characters(exclude_categories=()))


@given(any_text, any_text)
def test_the_text_is_envelope_newline_remainder_or_the_envelope_alone(envelope: str, remainder: str) -> None:  # HA-4
    wanted = envelope + "\n" + remainder if remainder else envelope
    assert Prompt(envelope, remainder).text == wanted


def test_the_hash_is_the_sha256_of_the_envelopes_bytes() -> None:  # CAP-8
    assert Prompt("ход", "r").envelope_hash == hashlib.sha256("ход".encode()).hexdigest()
    assert Prompt("", "r").envelope_hash == hashlib.sha256(b"").hexdigest()


@given(any_text, any_text)
def test_envelopes_that_differ_have_hashes_that_differ(one: str, other: str) -> None:  # CAP-8
    assert (Prompt(one).envelope_hash == Prompt(other).envelope_hash) == (one == other)


@given(any_text)
def test_every_text_comes_back_from_its_bytes(text: str) -> None:  # CAP-9
    assert bytes_text(text_bytes(text)) == text


def test_bytes_that_are_no_text_are_refused() -> None:  # CAP-9
    with pytest.raises(ValueError, match="utf-8"):
        bytes_text(b"\xff")
