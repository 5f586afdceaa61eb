"""The port between the factory and a coding agent, and the providers behind it by name.

A provider opens one model session a run. What a session is given for a send is exact: the messages as the model
will see them and one list of attachments, the same one that the trace is made of.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from factory.calls import Attachment
from factory.outcomes import Reply


class ProviderError(Exception):
    """The provider cannot be used as asked; the message is one line for a person."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The OpenAI-compatible endpoint of this site: empty strings for what is not configured."""

    base_url: str = ""
    api_key: str = ""
    model: str = ""

    @property
    def is_set(self) -> bool:
        return bool(self.base_url or self.api_key)


@dataclass(frozen=True, slots=True)
class Messages:
    """The exact messages of one send."""

    system: str
    user: str
    attachments: tuple[Attachment, ...] = ()


class Session(Protocol):
    """One model session. `model` and `session_id` are what is known before the next send."""

    model: str
    session_id: str | None

    def exact(self, messages: Messages) -> Messages:
        """The messages as they will reach the model, with what this provider is known to add."""

    def launch_command(self, messages: Messages) -> str:
        """What will be started or called, for the record: names, never values, of anything secret."""

    def send(self, messages: Messages) -> Reply:
        """Send (what `exact` was given, not what it answered) and wait. A failed provider is a Reply with `error`."""

    def close(self) -> None:
        """End whatever the session keeps open."""


class Provider(Protocol):
    """`has_tools`: its agent can read files by their path."""

    @property
    def name(self) -> str: ...

    @property
    def has_tools(self) -> bool: ...

    def accepts(self, attachment: Attachment) -> bool:
        """Can these bytes go as an attachment?"""

    def open(self, workspace: Path, run_id: int) -> Session:
        """Begin a session. Raises ProviderError."""


def provider_named(spec: str, *, endpoint: Endpoint = Endpoint(), project: Path = Path()) -> Provider:
    """The provider that `NAME` or `NAME:OPTION` asks for. Raises ProviderError."""
    if not spec.isprintable() or len(spec) > 200:
        raise ProviderError("a provider's name has at most 200 printable characters")
    name, _, option = spec.partition(":")
    match name:
        case "rehearsal":
            from factory.providers.rehearsal import Rehearsal

            return Rehearsal.parse(option)
        case "openai":
            from factory.providers.chat import Chat

            return Chat.parse(option, endpoint)
        case "pi":
            from factory.providers.pi import Pi

            return Pi.parse(option, endpoint, project)
    raise ProviderError(f"there is no provider {spec!r}; there are rehearsal, openai:NAME and pi")
