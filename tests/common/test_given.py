"""What the environment gives: one reading and one rule, whoever asks."""

from pathlib import Path

import pytest

from agentlab.common.given import NO_ENDPOINT, check_endpoint, given
from agentlab.hosted.model_adapters import open_model
from agentlab.persona.adapters import ports
from agentlab.persona.ports import PortFailed
from factory.providers import Endpoint, ProviderError, provider_named


def test_a_variable_and_its_file_together_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # SF-4
    (tmp_path / "key").write_text("from the file")
    monkeypatch.setenv("X_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("X", "")
    assert given("X") == "from the file"  # empty counts as unset
    monkeypatch.setenv("X", "hunter2")
    with pytest.raises(ValueError, match=r"^X and X_FILE are both set: keep one of them$"):
        given("X")


@pytest.mark.parametrize(("held", "said"), [(b" \n", "nothing is in it"), (b"\xff\xfe", "not UTF-8 text")])
def test_a_file_that_holds_no_value_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: bytes, said: str
) -> None:  # SF-4
    (tmp_path / "key").write_bytes(held)
    monkeypatch.setenv("X_FILE", str(tmp_path / "key"))
    with pytest.raises(ValueError, match=f"^X_FILE: {said}: "):
        given("X")


@pytest.mark.parametrize("address", ["", "http://127.0.0.1:8080/v1", "https://user:hunter2@models.example/v1"])
def test_a_key_alone_is_for_openai_itself(address: str) -> None:  # SF-4
    check_endpoint(address, "a key")


@pytest.mark.parametrize(
    "address", ["127.0.0.1:8080/v1", "models.example/v1", "ftp://models.example", "http://", "http://h:p"]
)
def test_an_address_without_a_scheme_or_a_host_is_none(address: str) -> None:  # SF-4
    with pytest.raises(ValueError, match=r"^OPENAI_BASE_URL is no address: http://host:port/v1, or https://$"):
        check_endpoint(address, "")


@pytest.mark.parametrize(
    ("address", "said"),
    [("", NO_ENDPOINT), ("hunter2@host", "OPENAI_BASE_URL is no address: http://host:port/v1, or https://")],
)
def test_agents_factory_and_personas_refuse_the_same_in_the_same_words(
    monkeypatch: pytest.MonkeyPatch, address: str, said: str
) -> None:  # SF-4
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    told = []
    with pytest.raises(ValueError) as agents:
        open_model("openai:x", base_url=address)
    with pytest.raises(ProviderError) as factory:
        provider_named("openai:x", endpoint=Endpoint(address))
    with pytest.raises(PortFailed) as personas:
        ports("hashing", "openai:x")
    told = [str(error.value) for error in (agents, factory, personas)]
    assert told == [said] * 3
