"""A TCP proxy that a test owns: it stands between a client and a real server, and can be cut, hung and mended."""

import contextlib
import socket
import threading


class Proxy:
    """Forwards 127.0.0.1:`port` to `target` until told otherwise."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._up = True
        self._flows = threading.Event()
        self._flows.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Every connection breaks, and new ones break at once."""
        with self._lock:
            self._up = False
            for one in self._open:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def hang(self) -> None:
        """Connections stay open, and nothing gets through."""
        self._flows.clear()

    def mend(self) -> None:
        with self._lock:
            self._up = True
        self._flows.set()

    def close(self) -> None:
        self._listener.close()
        self._flows.set()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if not self._up:
                    client.close()
                    continue
                server = socket.create_connection(self.target)
                self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
