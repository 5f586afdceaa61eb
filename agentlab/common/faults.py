"""What a log may know of a fault: its kind and where it arose. Its own words may quote what it was about, and that can
be somebody's prompt."""

import logging
import traceback


def without_words(error: BaseException) -> str:
    """The error's type and the lines of code that it came through, those of what caused it first."""
    told: list[str] = []
    one: BaseException | None = error
    while one is not None and len(told) < 10:
        told.append(f"{type(one).__name__}\n{''.join(traceback.format_tb(one.__traceback__))}")
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return "".join(reversed(told)).rstrip()


class RefusedRequests(logging.Filter):
    """What Django refuses as suspicious (another host's name, a form of too many fields) is one line of a log: it is
    the sender's fault, the trace would be the same each time, and anybody could fill a disk with it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith("django.security."):
            record.exc_info = record.exc_text = None
        return True
