"""A request is its exact words, and where they came from."""

import hashlib
import os
from pathlib import Path

import pytest

from factory.calls import AgentCall
from factory.resolve import REQUEST_LIMIT, RequestError, display_path, looks_like_a_path, resolve_request


def test_words_that_name_no_file_are_the_request_itself() -> None:  # FA-1
    request = resolve_request("Write a slugify command für alle\r\n")
    assert (request.text, request.source_kind, request.path) == (
        "Write a slugify command für alle\r\n",
        "inline_text",
        None,
    )
    data = "Write a slugify command für alle\r\n".encode()
    assert (request.byte_count, request.sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_a_files_bytes_are_kept_to_the_last_newline(tmp_path: Path) -> None:  # FA-1
    data = "\ufeffTue es\r\n\r\nzweimal\n\n\x00".encode()
    (tmp_path / "task.md").write_bytes(data)
    request = resolve_request(str(tmp_path / "task.md"))
    assert request.text.encode() == data == request.data
    assert (request.source_kind, request.path) == ("prompt_file", str(tmp_path / "task.md"))
    assert (request.byte_count, request.sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_a_prompt_file_is_read_once_and_its_later_changes_are_not_the_request(tmp_path: Path) -> None:  # FA-1
    path = tmp_path / "task.md"
    path.write_text("first")
    request = resolve_request(str(path))
    path.write_text("second")
    assert (request.text, request.data) == ("first", b"first")


def test_the_kind_can_be_forced(tmp_path: Path) -> None:  # FA-1
    path = tmp_path / "task.md"
    path.write_text("in the file")
    assert resolve_request(str(path), force="text").text == str(path)
    with pytest.raises(RequestError, match="there is no file"):
        resolve_request("Write it", force="file")


@pytest.mark.parametrize("words", ["x" * 5000, "two\nlines", "a/b/c of the alphabet"])
def test_words_that_cannot_be_a_path_are_words(words: str) -> None:  # FA-1
    assert resolve_request(words).source_kind == "inline_text"


@pytest.mark.parametrize(
    ("arg", "is_path"),
    [
        *((word, True) for word in ("task.md", "notes/task", "./x", "a-b.json", "x.c", "/no/such")),
        *((word, False) for word in ("slugify", "v1.2", "Done.", "see https://a.example/b.md", "https://a.example/b")),
        *((words, False) for words in ("Write a/b and c.md", "two\nlines.md", "", ".", "so.everywhere")),
    ],
)
def test_one_word_that_reads_like_a_file_name_is_told_from_words(arg: str, is_path: bool) -> None:  # FA-1
    assert looks_like_a_path(arg) is is_path


def test_what_is_not_utf8_is_refused_in_one_line(tmp_path: Path) -> None:  # FA-1
    (tmp_path / "task.md").write_bytes(b"caf\xe9")
    with pytest.raises(RequestError, match=r"task\.md is not UTF-8 \(byte 3\)"):
        resolve_request(str(tmp_path / "task.md"))
    with pytest.raises(RequestError, match="not valid UTF-8"):
        resolve_request(os.fsdecode(b"caf\xe9"))


def test_a_file_that_cannot_be_the_request_is_refused_not_taken_as_words(tmp_path: Path) -> None:  # FA-1
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(RequestError, match="not a regular file"):
            resolve_request(str(name))


def test_a_file_larger_than_the_limit_is_refused(tmp_path: Path) -> None:  # FA-1
    with (tmp_path / "big").open("wb") as file:
        file.truncate(REQUEST_LIMIT + 1)
    with pytest.raises(RequestError, match="larger than 10 MiB"):
        resolve_request(str(tmp_path / "big"))


@pytest.mark.parametrize("words", ["", "  \n"])
def test_an_empty_request_is_refused(words: str) -> None:  # SF-4
    with pytest.raises(RequestError, match="empty"):
        resolve_request(words)


def test_a_call_made_directly_has_an_explicit_inline_descriptor() -> None:  # FA-1
    call = AgentCall(phase="ask", task="Do it", system_prompt="", user_prompt="Do it")
    assert (call.request.source_kind, call.request.text, call.request.path) == ("inline_text", "Do it", None)


def test_a_file_name_that_is_not_utf8_is_shown_as_text() -> None:  # FA-6
    assert display_path(os.fsdecode(b"caf\xe9/\xff")) == "caf\\xe9/\\xff"
