"""A collector on the loopback that keeps whatever it is sent: `python -m tests.bench.peers.sink PORT`.

It answers at once and decodes only when asked, `GET /arrived`, so that it takes little of the machine from the caller.
"""

import gzip
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = re.compile(rb"turn-\d{6}")
BODIES: list[tuple[str, bytes]] = []


def arrived() -> dict[str, int]:
    """Distinct turns among the traces, and the bytes that were sent for them."""
    names: set[bytes] = set()
    for encoding, body in BODIES:
        names.update(NAME.findall(gzip.decompress(body) if encoding == "gzip" else body))
    return {"turns": len(names), "bytes": sum(len(body) for _, body in BODIES)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path.endswith("/traces"):
            BODIES.append((self.headers.get("Content-Encoding", ""), body))
        self._answer("application/x-protobuf", b"")

    def do_GET(self) -> None:
        # The other answer is what Logfire asks about its project when it starts.
        value = arrived() if self.path == "/arrived" else {"project_name": "none", "project_url": "none"}
        self._answer("application/json", json.dumps(value).encode())

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent: the log of a measurement is the recorder's."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
