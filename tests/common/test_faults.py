"""A fault in the log: where it arose, and nothing of what it was about."""

import io
import logging

import pytest
from django.test import Client

from agentlab.common.faults import RefusedRequests, without_words


def _reads(prompt: str) -> int:
    try:
        return int(prompt)
    except ValueError as error:
        raise KeyError(f"cannot read {prompt}") from error


def test_a_log_gets_the_kind_and_the_place_of_a_fault_and_not_its_words() -> None:  # CAP-14
    try:
        _reads(" ".join(["As", "Kd"]))  # not in the line itself, which the log has
    except KeyError as error:
        told = without_words(error)
    assert "As Kd" not in told
    assert told.startswith("ValueError\n")
    assert "\nKeyError\n" in told
    assert told.count("in _reads") == 2
    assert "raise KeyError" in told


def test_a_fault_that_was_never_raised_has_its_kind() -> None:
    assert without_words(OSError("secret")) == "OSError"


def test_a_request_for_another_host_is_one_line_of_the_log_and_a_fault_keeps_its_trace(  # SF-4
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console = next(one for one in logging.getLogger().handlers if any(type(f) is RefusedRequests for f in one.filters))
    told = io.StringIO()
    monkeypatch.setattr(console, "stream", told)
    assert Client().get("/", headers={"host": "evil.example\nERROR"}).status_code == 400
    assert told.getvalue().count("\n") == 1
    assert "Invalid HTTP_HOST header: 'evil.example\\nERROR'" in told.getvalue()
    try:
        raise KeyError("ours")
    except KeyError:
        logging.getLogger("django.request").exception("A page broke")
    assert "Traceback" in told.getvalue()
