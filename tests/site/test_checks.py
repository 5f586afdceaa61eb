"""System checks of what a host can set wrongly."""

import pytest
from django.test import override_settings

from agentlab.checks import other_host, stores_are_named


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


def test_a_deployed_site_is_told_which_store_it_was_not_given(monkeypatch: pytest.MonkeyPatch) -> None:  # SF-3
    for name in ("DATABASE_URL", "AGENT_CAPTURE_REDIS_URL", "DATABASE_URL_FILE", "AGENT_CAPTURE_REDIS_URL_FILE"):
        monkeypatch.delenv(name, raising=False)
    assert [one.msg for one in stores_are_named(None)] == [
        "DATABASE_URL is not set.",
        "AGENT_CAPTURE_REDIS_URL is not set.",
    ]
    monkeypatch.setenv("DATABASE_URL_FILE", "/etc/agentlab/database")
    with override_settings(HOSTED_AGENT_URL="https://hands.example"):
        assert stores_are_named(None) == []
