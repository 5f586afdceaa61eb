"""The far end of the network for clients in other processes: a real HTTP server that speaks chat completions,
streamed where the request asks for it, and embeddings, with the answers that a test wrote down. It keeps every
request's bytes."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Says:
    """One answer: words, a tool call (`tool=("bash", {…})`), embeddings, or an HTTP `status` that is an error."""

    text: str = ""
    tool: tuple[str, dict[str, Any]] | None = None
    status: int = 200
    finish: str = "stop"
    breaks_off: bool = False
    vectors: list[list[float]] | None = None


@dataclass
class ScriptedServer:
    """`bodies` are the requests as they came, byte for byte. An answer that is missing hangs the request until the
    test ends. `decide` answers in the place of the list, and may leave its answer out as well."""

    answers: list[Says]
    decide: Callable[[dict[str, Any]], Says | None] | None = None
    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    def take(self, body: bytes, key: str | None) -> Says | None:
        with self._lock:
            self.bodies.append(body)
            self.keys.append(key)
            self.arrived.release()
            if self.decide:
                return self.decide(json.loads(body))
            return self.answers.pop(0) if self.answers else None


@contextmanager
def scripted_server(
    *answers: Says, decide: Callable[[dict[str, Any]], Says | None] | None = None
) -> Iterator[ScriptedServer]:
    script = ScriptedServer(list(answers), decide)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            says = script.take(body, self.headers["authorization"])
            if says is None:
                script.over.wait()
            elif says.status != 200:
                self._error(says.status)
            elif says.vectors is not None:
                self._whole(embeddings(says.vectors))
            elif json.loads(body).get("stream"):
                self._stream(says)
            else:
                self._whole(completion(says))

        def _whole(self, answer: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def _error(self, status: int) -> None:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "service overloaded, please retry", "type": "overloaded"}}')

        def _stream(self, says: Says) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in events(says):
                self.wfile.write(f"data: {event}\n\n".encode())

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        script.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def completion(says: Says) -> dict[str, Any]:
    """The answer in one piece."""
    choice = {"index": 0, "message": {"role": "assistant", "content": says.text}, "finish_reason": says.finish}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "scripted-1", "choices": [choice]}


def embeddings(vectors: list[list[float]]) -> dict[str, Any]:
    rows = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": "scripted-1", "data": rows[::-1], "usage": usage}  # in no order: `index` counts


def events(says: Says) -> Iterator[str]:
    """The answer in pieces, its end, its usage, and the end of the stream."""
    for start in range(0, len(says.text), 7):
        yield _chunk({"content": says.text[start : start + 7]})
    if says.breaks_off:
        return
    if says.tool:
        name, arguments = says.tool
        call = {"name": name, "arguments": json.dumps(arguments)}
        yield _chunk({"tool_calls": [{"index": 0, "id": f"call-{name}", "type": "function", "function": call}]})
    yield _chunk({}, finish="tool_calls" if says.tool else says.finish)
    yield _event(choices=[], usage={"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110})
    yield "[DONE]"


def _chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    return _event(choices=[{"index": 0, "delta": {"role": "assistant"} | delta, "finish_reason": finish}])


def _event(**fields: Any) -> str:
    return json.dumps({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted-1"} | fields)
