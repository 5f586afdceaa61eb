"""The site as a process of its own on a free port, as another host would run it; prints the port. Run by tests."""

import socketserver
import sys
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django


class Threaded(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    django.setup()
    from django.core.wsgi import get_wsgi_application

    server = make_server("127.0.0.1", 0, get_wsgi_application(), Threaded, Quiet)
    print(server.server_port, flush=True)
    sys.stdin.close()
    server.serve_forever()


if __name__ == "__main__":
    main()
