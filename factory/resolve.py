"""A request's exact words and where they came from."""

import errno
import hashlib
import os
import re
import stat
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

REQUEST_LIMIT = 10 * 1024**2
"""Bytes a prompt file may have: what one snapshot may have, so that no request is too large to be kept."""

SourceKind = Literal["inline_text", "prompt_file"]
Force = Literal["text", "file"]

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_EXTENSION = re.compile(r"\w\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_NO_SUCH_PATH = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EINVAL}


class RequestError(ValueError):
    """The request cannot be taken; the message is one line for a person."""


@dataclass(frozen=True, slots=True)
class ResolvedRequest:
    """The task's exact text, its source, its size in UTF-8 bytes and the lowercase SHA-256 of those bytes.

    The bytes were read once; whoever needs them later takes them from here, never from the file again.
    """

    text: str
    source_kind: SourceKind
    path: str | None
    byte_count: int
    sha256: str
    data: bytes = field(repr=False)


def inline_request(text: str) -> ResolvedRequest:
    """The descriptor of text that was given as text. Raises RequestError where UTF-8 cannot say it."""
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise RequestError("the request is not valid UTF-8") from None
    return _request(text, data, "inline_text", None)


def resolve_request(arg: str, *, force: Force | None = None) -> ResolvedRequest:
    """What `arg` asks for: the file of that name where there is one, else the words themselves.

    `force` takes it as "text" or as a "file" whatever lies on the disk. Raises RequestError: an empty request, a
    file that cannot be read, is not a regular file, is over REQUEST_LIMIT or is not UTF-8.
    """
    data = None if force == "text" else read_file(arg)
    if data is None and force == "file":
        raise RequestError(f"there is no file {display_path(arg)[:300]}")
    request = inline_request(arg) if data is None else _file_request(arg, data)
    if not request.text.strip():
        raise RequestError("the request is empty")
    return request


def looks_like_a_path(arg: str) -> bool:
    """Would somebody who typed this one word have meant a file? `notes/task`, `task.md`; not `slugify`, `v1.2`."""
    if not arg or re.search(r"\s", arg) or "://" in arg:
        return False
    return os.sep in arg or _EXTENSION.search(arg) is not None


def display_path(path: str) -> str:
    """A path as text that any terminal, database and page can hold: bytes that are not UTF-8 as `\\xNN`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def one_line(name: str) -> str:
    """The name as it stands in a line of a message: what would end the line, and other controls, as `\\xNN`."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", name)


def read_file(path: str, limit: int = REQUEST_LIMIT) -> bytes | None:
    """A regular file's bytes, or None where there is no file of this name. It never waits (a FIFO would make it).

    Raises RequestError: not a regular file, not readable, larger than `limit` bytes.
    """
    name = display_path(path)
    try:
        with open_regular(path) as file:
            data = file.read(limit + 1)
    except RequestError:
        raise
    except ValueError:  # a NUL
        return None
    except OSError as error:
        if error.errno in _NO_SUCH_PATH:
            return None
        raise RequestError(f"cannot read {name}: {error.strerror}") from None
    if len(data) > limit:
        raise RequestError(f"{name} is larger than {limit // 1024**2} MiB")
    return data


def open_regular(path: str) -> BinaryIO:
    """The regular file, open, without waiting for anything. Raises RequestError for what is none, and as `open`."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise RequestError(f"{display_path(path)} is not a regular file")


def _file_request(path: str, data: bytes) -> ResolvedRequest:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(f"{display_path(path)} is not UTF-8 (byte {error.start})") from None
    return _request(text, data, "prompt_file", os.path.abspath(path))  # noqa: PTH100 - a link's own name is kept


def _request(text: str, data: bytes, kind: SourceKind, path: str | None) -> ResolvedRequest:
    return ResolvedRequest(text, kind, path, len(data), hashlib.sha256(data).hexdigest(), data)
