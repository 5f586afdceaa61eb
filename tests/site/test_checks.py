"""System checks of what a host can set wrongly."""

import pytest
from django.test import override_settings

from agentlab.checks import other_host


@pytest.mark.parametrize(
    ("url", "key", "found"),
    [
        ("", "", []),
        ("https://hands.example", "k", []),
        ("http://127.0.0.1:8000", "k", []),
        ("http://hands.example", "k", ["agentlab.W001"]),
        ("https://hands.example", "", ["agentlab.E002"]),
        ("hands.example", "k", ["agentlab.E001"]),
        ("ftp://hands.example", "k", ["agentlab.E001"]),
    ],
)
def test_another_host_needs_an_address_a_key_and_encryption(url: str, key: str, found: list[str]) -> None:  # RD-5, SF-3
    with override_settings(HOSTED_AGENT_URL=url, AGENT_CAPTURE_SERVICE_KEY=key):
        assert [message.id for message in other_host(None)] == found
