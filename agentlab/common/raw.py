"""The exact stored bytes of a text, as an answer that no browser can take for anything but text."""

import re

from django.http import HttpResponse

from agentlab.common.text import encoded


def raw_text(text: str, filename: str, *, download: bool = False, status: int = 200) -> HttpResponse:
    """`text/plain; charset=utf-8`; a text with lone surrogates is not valid UTF-8, so its bytes are a download.

    `filename` may hold anything: what is not a plain letter, digit, dot or hyphen becomes a hyphen.
    """
    data = encoded(text)
    valid = _is_utf8(data)
    kind_of = "text/plain; charset=utf-8" if valid else "application/octet-stream"
    response = HttpResponse(data, content_type=kind_of, status=status)
    kind = "inline" if valid and not download else "attachment"
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", filename).strip("-.") or "text"
    response.headers["Content-Disposition"] = f'{kind}; filename="{name}.txt"'
    response.headers["Cache-Control"] = "private, no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
