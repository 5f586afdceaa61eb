"""A local server that speaks the chat completions protocol, well or badly, as each test wants it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Write = Callable[[bytes], Awaitable[None]]


@dataclass
class Endpoint:
    """`url` is the base URL; `requests` are the bodies that came. `answer` writes the whole HTTP response."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    answer: Callable[[Write], Awaitable[None]] | None = None


@asynccontextmanager
async def endpoint(answer: Callable[[Write], Awaitable[None]]) -> AsyncIterator[Endpoint]:
    server_side = Endpoint(answer=answer)
    tasks = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.split("content-length:")[1].split("\r\n")[0])
            server_side.requests.append(json.loads(await reader.readexactly(length)))

            async def write(data: bytes) -> None:
                writer.write(data)
                await writer.drain()

            await server_side.answer(write)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()[:2]
    server_side.url = f"http://{host}:{port}/v1"
    try:
        yield server_side
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def head(status: str = "200 OK", content_type: str = "application/json", *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", "Connection: close", *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def says(body: Any, *, status: str = "200 OK", content_type: str = "application/json"):
    """The whole body at once."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def answer(write: Write) -> None:
        await write(head(status, content_type) + data)

    return answer


def streams(*events: Any, done: bool = True, newline: str = "\n"):
    """Server-sent events, one write each."""

    async def answer(write: Write) -> None:
        await write(head(content_type="text/event-stream"))
        for event in events:
            await write(f"data: {json.dumps(event)}{newline}{newline}".encode())
            await asyncio.sleep(0)
        if done:
            await write(f"data: [DONE]{newline}{newline}".encode())

    return answer


def completion(content: Any, **message: Any) -> dict[str, Any]:
    return {
        "id": "c-1",
        "object": "chat.completion",
        "model": "served-1",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7},
    }


def delta(**fields: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "model": "served-1", "choices": [{"index": 0, "delta": fields}]}
