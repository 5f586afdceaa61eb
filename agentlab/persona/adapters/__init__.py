"""The ports' adapters, by the names that a study file uses."""

from functools import lru_cache

from agentlab.persona.adapters.complete_rules import RuleModel
from agentlab.persona.adapters.embed_hashing import HashingEmbedder
from agentlab.persona.ports import CompletionPort, EmbedPort, PortFailed, Ports

REMOTE = "openai:"


def paid(*names: str) -> bool:
    """Is one of these ports far away, where a call takes long and costs money?"""
    return any(name.startswith(REMOTE) for name in names)


@lru_cache(maxsize=8)
def ports(embedder: str, model: str) -> Ports:
    """The adapters for `embedder` (hashing, wordllama, openai:NAME) and `model` ("", rules, openai:NAME), made once
    in a process. Raises `PortFailed` where one is unknown or cannot be opened."""
    return Ports(_embedder(embedder), _model(model) if model else None)


def _embedder(name: str) -> EmbedPort:
    if name == "hashing":
        return HashingEmbedder()
    if name == "wordllama":
        try:
            from agentlab.persona.adapters.embed_wordllama import WordLlamaEmbedder
        except ImportError:
            raise PortFailed("wordllama is not installed: pip install -c constraints.txt -e '.[embed]'") from None
        return WordLlamaEmbedder()
    if name.startswith(REMOTE) and name != REMOTE:
        from agentlab.persona.adapters.openai import OpenAIEmbedder

        return OpenAIEmbedder(name.removeprefix(REMOTE))
    raise PortFailed(f"no embedder {name!r}: hashing, wordllama or openai:MODEL")


def _model(name: str) -> CompletionPort:
    if name == "rules":
        return RuleModel()
    if name.startswith(REMOTE) and name != REMOTE:
        from agentlab.persona.adapters.openai import OpenAICompleter

        return OpenAICompleter(name.removeprefix(REMOTE))
    raise PortFailed(f"no model {name!r}: rules or openai:MODEL")
