"""Any OpenAI-compatible endpoint, through the official client: chat completions, streamed.

The endpoint keeps no session, so the history is resent by us: the messages of every earlier turn and its reply, as
they were. Images go as parts of the user's message. The model has no tools here: it answers in words.
"""

import base64
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import openai

from agentlab.common.given import OPENAI, check_endpoint
from factory import values
from factory.calls import Attachment
from factory.outcomes import Reply
from factory.providers import Endpoint, Messages, ProviderError

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionChunk

TIMEOUT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Chat:
    endpoint: Endpoint
    name: str
    has_tools: bool = False

    @classmethod
    def parse(cls, option: str, endpoint: Endpoint) -> "Chat":
        model = option or endpoint.model
        try:
            check_endpoint(endpoint.base_url, endpoint.api_key)
        except ValueError as error:
            raise ProviderError(str(error)) from None
        if not model:
            raise ProviderError("openai needs a model: --provider openai:NAME, or AGENTLAB_MODEL")
        return cls(Endpoint(endpoint.base_url, endpoint.api_key, model), f"openai:{model}")

    def accepts(self, attachment: Attachment) -> bool:
        return attachment.media_type.startswith("image/")

    def open(self, workspace: Path, run_id: int) -> "ChatSession":
        client = openai.OpenAI(
            base_url=self.endpoint.base_url or OPENAI,
            api_key=self.endpoint.api_key or "none",
            timeout=TIMEOUT_SECONDS,
            max_retries=0,  # a retry of the client's would be a send that nobody recorded
        )
        return ChatSession(client, self.endpoint.model, f"chat-{uuid.uuid4().hex}")


@dataclass(slots=True)
class ChatSession:
    client: openai.OpenAI
    model: str
    session_id: str | None
    _history: list[dict[str, Any]] = field(default_factory=list)

    def exact(self, messages: Messages) -> Messages:
        return messages

    def launch_command(self, messages: Messages) -> str:
        url = self.client.base_url.copy_with(userinfo=b"", query=None)
        return f"POST {url}chat/completions, model {self.model}, {len(self._history)} messages of history"

    def send(self, messages: Messages) -> Reply:
        user = {"role": "user", "content": _content(messages)}
        sent: list[Any] = [{"role": "system", "content": messages.system}, *self._history, user]
        heard = _Heard(self.model)
        try:
            stream = self.client.chat.completions.create(
                model=self.model,
                messages=sent,
                stream=True,
                stream_options={"include_usage": True},
            )
            with stream:
                for chunk in stream:
                    heard.hear(chunk)
        except openai.APIError as error:
            return heard.reply(self.session_id, f"{type(error).__name__}: {error.message}")
        except Exception as error:  # the stream's own: a line that is cut, an event that is no JSON
            return heard.reply(self.session_id, f"the answer broke off ({type(error).__name__}: {error})")
        if not heard.finished:
            return heard.reply(self.session_id, "the answer broke off")
        self._history += [user, {"role": "assistant", "content": heard.text}]
        return heard.reply(self.session_id, "")

    def close(self) -> None:
        self.client.close()


@dataclass(slots=True)
class _Heard:
    """What the stream has said so far."""

    model: str
    text: str = ""
    finished: str = ""
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None

    def hear(self, chunk: "ChatCompletionChunk") -> None:
        # The client checks no types: an endpoint of any make may answer anything.
        self.model = values.text(chunk.model) or self.model
        if usage := chunk.usage:
            self.input_tokens = values.count(usage.prompt_tokens)
            self.cached_input_tokens = values.count(getattr(usage.prompt_tokens_details, "cached_tokens", None))
            self.output_tokens = values.count(usage.completion_tokens)
        for choice in (chunk.choices or [])[:1]:
            self.text += values.text(choice.delta.content) if choice.delta else ""
            self.finished = values.text(choice.finish_reason) or self.finished

    def reply(self, session_id: str | None, error: str) -> Reply:
        cut = "the answer was cut off at the model's length limit" if self.finished == "length" else ""
        return Reply(
            self.text if self.text or not error else None,
            error=error,
            model=self.model,
            session_id=session_id,
            input_tokens=self.input_tokens,
            cached_input_tokens=self.cached_input_tokens,
            output_tokens=self.output_tokens,
            remarks=(cut,) if cut else (),
        )


def _content(messages: Messages) -> str | list[dict[str, Any]]:
    if not messages.attachments:
        return messages.user
    images = [{"type": "image_url", "image_url": {"url": _data_url(one)}} for one in messages.attachments]
    return [{"type": "text", "text": messages.user}, *images]


def _data_url(attachment: Attachment) -> str:
    return f"data:{attachment.media_type};base64,{base64.b64encode(attachment.data).decode()}"
