"""A value that does not fit, as somebody who wrote a file by hand can read of it."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from agentlab.common.misfit import in_plain_words
from agentlab.hosted.model_answers import read_answers


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ("x", int | None, "must be a whole number or null, not text"),
        (1, list[int] | dict[str, int], "must be a mapping or a list, not a whole number"),
        (None, bool, "must be true or false, not null"),
        (1, Annotated[int, msgspec.Meta(ge=2)], "must be a whole number, 2 or more"),
        (3.5, Annotated[float, msgspec.Meta(le=2)], "must be a number, 2 or less"),
        (0.0, Annotated[float, msgspec.Meta(gt=0)], "must be a number, above 0"),
        ("abcd", Annotated[str, msgspec.Meta(max_length=3)], "must be text of at most 3 characters"),
        ([], Annotated[list[int], msgspec.Meta(min_length=1)], "must be a list of at least 1 entries"),
        ("a b", Annotated[str, msgspec.Meta(pattern="^[a-z]$")], "must be text of another form"),
        ("up", Literal["down"], "'up' is none of the words that it may be"),
    ],
)
def test_a_misfit_is_said_without_the_words_of_a_program(value: Any, kind: Any, said: str) -> None:  # SF-4
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert(value, kind)
    assert in_plain_words(str(error.value)) == said


def test_a_line_of_answers_that_does_not_fit_names_its_field(tmp_path: Path) -> None:  # SF-4
    path = tmp_path / "answers.jsonl"
    path.write_text('{"text": "fold"}\n{"text": 7}\n')
    with pytest.raises(ValueError) as error:
        read_answers(path)
    assert str(error.value) == f"{path}, line 2: text: must be text, not a whole number"
    path.write_text("[]\n")
    with pytest.raises(ValueError) as error:
        read_answers(path)
    assert str(error.value) == f"{path}, line 1: must be a mapping, not a list"
