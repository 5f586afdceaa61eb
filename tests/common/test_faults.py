"""A fault in the log: where it arose, and nothing of what it was about."""

from agentlab.common.faults import without_words


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
