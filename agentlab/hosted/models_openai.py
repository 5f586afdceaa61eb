"""Any OpenAI-compatible endpoint, through the official client.

One request a turn and no retries: the turn's clock decides, and a second answer would be a second decision. The
answer is read from the body as it stands, whether the server sent one JSON object or, asked or not, a stream of
server-sent events; names that compatible servers added (`reasoning`, `reasoning_content`, `usage.cost`, `provider`)
are read where they are there.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import urlsplit

import openai

from agentlab.common.given import OPENAI, check_endpoint
from agentlab.hosted.model_port import Completion, ModelFailed

# A poker answer with long thoughts is some ten kilobytes; a body past this is a runaway, not an answer.
MAX_BODY_BYTES = 4 * 1024 * 1024


class OpenAIModel:
    """`name` at `base_url` (OpenAI itself where empty). Raises ValueError where `check_endpoint` does."""

    def __init__(self, name: str, *, base_url: str = "", api_key: str = "") -> None:
        check_endpoint(base_url, api_key)
        self.name = name
        # A local server may ask for no key, but the client insists on one.
        self._client = openai.AsyncOpenAI(api_key=api_key or "none", base_url=base_url or OPENAI, max_retries=0)
        self.routing = urlsplit(str(self._client.base_url)).hostname or ""

    async def complete(self, prompt: str, *, timeout: float) -> Completion:
        try:
            async with self._client.chat.completions.with_streaming_response.create(
                model=self.name, messages=[{"role": "user", "content": prompt}], timeout=timeout + 1
            ) as response:
                body = await _bounded(response)
        except openai.APITimeoutError:
            raise ModelFailed("timed out") from None
        except openai.RateLimitError:
            raise ModelFailed("rate limited (429)") from None
        except openai.APIStatusError as error:
            raise ModelFailed(f"the endpoint answered {error.status_code}") from None
        except openai.APIConnectionError:
            raise ModelFailed("the endpoint cannot be reached") from None
        return self._read(body)

    def _read(self, body: bytes) -> Completion:
        text = body.decode("utf-8", "replace")
        answer = _json_object(text)
        if answer is None:
            answer = _joined(list(_events(text)))
        if "error" in answer and not answer.get("choices"):
            raise ModelFailed("the endpoint answered with an error")
        message = _message(answer)
        usage = _dict(answer.get("usage"))
        provider = answer.get("provider")
        return Completion(
            text=_text(message.get("content")),
            reasoning=_reasoning(message),
            tool_call=_tool_call(message.get("tool_calls")),
            model=str(answer.get("model") or self.name),
            routing=f"{self.routing} {provider}" if isinstance(provider, str) else self.routing,
            input_tokens=_count(usage.get("prompt_tokens")),
            output_tokens=_count(usage.get("completion_tokens")),
            cost=_cost(usage.get("cost")),
        )

    async def close(self) -> None:
        await self._client.close()


async def _bounded(response: Any) -> bytes:
    body = bytearray()
    try:
        async for part in response.iter_bytes():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise ModelFailed("the answer is too large")
    except (ModelFailed, openai.OpenAIError):
        raise
    except Exception:  # while a body is read, the client lets the HTTP library's own errors through
        raise ModelFailed("the connection broke") from None
    return bytes(body)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _events(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream's `data:` lines. https://html.spec.whatwg.org/multipage/server-sent-events.html"""
    for line in re.split("\r\n|\r|\n", text):  # splitlines() would also cut at U+2028, which JSON may hold
        if line.startswith("data:") and (event := _json_object(line[5:].strip())) is not None:
            yield event


def _joined(events: list[dict[str, Any]]) -> dict[str, Any]:
    """One answer from a stream's chunks. Raises ModelFailed where there was none, or where it broke off in an error."""
    if not events:
        raise ModelFailed("the endpoint's answer is not a completion")
    message: dict[str, Any] = {}
    whole: dict[str, Any] = {"choices": [{"message": message}]}
    texts: dict[str, str] = {}
    for event in events:
        if "error" in event:
            raise ModelFailed("the endpoint broke off with an error")
        whole.update({key: event[key] for key in ("model", "usage", "provider") if event.get(key)})
        delta = _dict(_first(event.get("choices")).get("delta"))
        for key in ("content", "reasoning", "reasoning_content"):
            if isinstance(part := delta.get(key), str):
                texts[key] = texts.get(key, "") + part
        _add_tool_call(message, delta.get("tool_calls"))
    message.update(texts)
    return whole


def _add_tool_call(message: dict[str, Any], deltas: Any) -> None:
    """The first tool call, whose name comes in one chunk and whose arguments come in many."""
    delta = _first(deltas)
    if not delta or delta.get("index") not in (None, 0):
        return
    part = _dict(delta.get("function"))
    call = message.setdefault("tool_calls", [{"function": {"name": "", "arguments": ""}}])[0]["function"]
    for key in ("name", "arguments"):
        if isinstance(piece := part.get(key), str):
            call[key] += piece


def _message(answer: dict[str, Any]) -> dict[str, Any]:
    choice = _first(answer.get("choices"))
    if not isinstance(message := choice.get("message"), dict):
        raise ModelFailed("the endpoint's answer is not a completion")
    return message


def _text(content: Any) -> str:
    """`content` is text, null beside a tool call, or a list of parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _reasoning(message: dict[str, Any]) -> str | None:
    for key in ("reasoning_content", "reasoning"):
        if isinstance(thoughts := message.get(key), str):
            return thoughts
    return None


def _tool_call(calls: Any) -> dict[str, Any] | None:
    """The first call; arguments that are no JSON object are kept as they came, under `unreadable`."""
    function = _first(calls).get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    given = function.get("arguments")
    if isinstance(given, str):
        parsed = _json_object(given) if given.strip() else {}
        given = {"unreadable": given} if parsed is None else parsed
    return {"name": function["name"], "args": given if isinstance(given, dict) else {}}


def _first(values: Any) -> dict[str, Any]:
    return _dict(values[0]) if isinstance(values, list) and values else {}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def _cost(value: Any) -> Decimal | None:
    """US dollars, as some compatible routers report them; the ledger's column holds ten digits on either side."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        cost = Decimal(str(value))
    except InvalidOperation:
        return None
    return cost if cost.is_finite() and 0 <= cost < 10**9 else None
