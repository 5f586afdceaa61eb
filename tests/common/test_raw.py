"""Exact bytes, as an answer that no browser can take for anything but text."""

import pytest

from agentlab.common.raw import raw_text


@pytest.mark.parametrize("text", ["", "\nfirst", "a\r\nb\rc", "nul\0", "\ufeffbom", "é🂡", "<script>"])
def test_text_comes_as_its_own_bytes(text: str) -> None:  # CAP-9
    response = raw_text(text, "prompt")
    assert response.content == text.encode()
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Cache-Control"] == "private, no-store"  # SF-2
    assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response["Content-Disposition"].startswith("inline")


def test_bytes_that_are_not_utf8_are_a_download() -> None:  # CAP-9
    response = raw_text("a\ud83d", "prompt")
    assert response.content == b"a\xed\xa0\xbd"
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"] == 'attachment; filename="prompt.txt"'


def test_a_file_name_is_made_harmless() -> None:
    header = raw_text("x", '../T 4:"1"\r\nSet-Cookie: a/…')["Content-Disposition"]
    assert header == 'inline; filename="T-4-1-Set-Cookie-a.txt"'
