"""System checks of what a host can set wrongly."""

import pytest
from django.test import override_settings

from agentlab.checks import hosts_are_names, models_can_be_asked, other_host, stores_are_named


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


@pytest.mark.parametrize("host", ["agentlab.example", ".agentlab.example", "*", "127.0.0.1", "[::1]", "localhost"])
def test_a_host_is_a_name(host: str) -> None:  # SF-3
    with override_settings(ALLOWED_HOSTS=[host]):
        assert hosts_are_names(None) == []


@pytest.mark.parametrize(
    "host", ["https://agentlab.example", "agentlab.example:8000", "agentlab.example/", "[::1]:8000", "::1", "a b"]
)
def test_a_host_with_a_scheme_a_port_or_a_path_matches_no_request(host: str) -> None:  # SF-3
    with override_settings(ALLOWED_HOSTS=["agentlab.example", host]):
        (found,) = hosts_are_names(None)
    assert (found.id, host in found.msg, "\n" in found.msg, bool(found.hint)) == ("agentlab.E003", True, False, True)


@pytest.mark.parametrize(
    ("model", "address", "key", "found"),
    [
        ("house", "", "", []),
        ("openai:x", "", "k", []),
        ("openai:x", "https://models.example/v1", "", []),
        ("house", "models.example/v1", "", ["agentlab.E004"]),
        ("gpt", "", "k", ["agentlab.E005"]),
        ("openai:", "", "k", ["agentlab.E005"]),
        ("openai:x", "", "", ["agentlab.E005"]),
        ("answers:/no/such/file", "", "", ["agentlab.E005"]),
    ],
)
def test_a_model_that_cannot_be_asked_is_found_before_anybody_plays(
    model: str, address: str, key: str, found: list[str]
) -> None:  # SF-3
    with override_settings(AGENTLAB_MODEL=model, OPENAI_BASE_URL=address, OPENAI_API_KEY=key):
        messages = models_can_be_asked(None)
    assert [message.id for message in messages] == found
    assert all("\n" not in message.msg and message.hint for message in messages)
