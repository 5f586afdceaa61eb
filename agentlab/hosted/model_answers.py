"""A model that answers from a file: each line the next completion, from the top again after the last.

A line is a JSON object with `text` and, where the answer had them, `reasoning_channel`, `tool_call`
({"name": …, "args": {…}}) and `model`. For replaying what real models once said against our reader and table.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from agentlab.common.misfit import in_plain_words
from agentlab.hosted.model_port import Completion


class Answer(msgspec.Struct):
    """One line of the file; fields that we do not know are somebody else's business."""

    text: str
    reasoning_channel: str | None = None
    tool_call: dict[str, Any] | None = None
    model: str = "answers"


class AnswersModel:
    """Serves the file's lines in order, to whoever asks next. Raises ValueError, in one line, for a bad file."""

    routing = "answers"

    def __init__(self, path: str) -> None:
        self.name = f"answers:{Path(path).name}"
        self._answers = read_answers(Path(path))
        self._next = 0

    async def complete(self, prompt: str, *, timeout: float) -> Completion:
        answer = self._answers[self._next % len(self._answers)]
        self._next += 1
        return Completion(answer.text, answer.reasoning_channel, answer.tool_call, answer.model, self.routing)

    async def close(self) -> None:
        return None


def read_answers(path: Path) -> list[Answer]:
    """The file's answers. Raises ValueError naming the file and the line."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    answers = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            # The standard reader, because it keeps lone surrogates, which real answers hold.
            answers.append(msgspec.convert(json.loads(line), Answer))
        except msgspec.ValidationError as error:
            said, _, place = str(error).partition(" - at `$.")
            where = f"{place.rstrip('`')}: " if place else ""
            raise ValueError(f"{path}, line {number}: {where}{in_plain_words(said)}") from None
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
    if not answers:
        raise ValueError(f"{path}: no answers in it")
    return answers
