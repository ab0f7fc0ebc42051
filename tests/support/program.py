"""A program that takes webhooks, as a developer's own: it keeps what came, and answers what a test wants."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from hookonce.providers import Delivery


class Came(NamedTuple):
    """A request as it came."""

    delivery: Delivery
    path: str

    @property
    def origin(self):
        """The ledger id in the inbox that it is from."""
        return int(self.delivery.headers["hookonce-origin"].split()[1])


class Program:
    """What came is in `came`; `answer(request)` is the status, and None closes the connection without one."""

    def __init__(self, port=0, answer=lambda _: 200):
        self.came = []
        self.answer = answer
        program = self

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                url = f"http://{headers.get('host')}{self.path}"
                request = Came(Delivery(self.command, url, headers, body), self.path)
                program.came.append(request)
                status = program.answer(request)
                if status is None:
                    self.connection.close()
                    return
                said = b"" if status < 300 else b"no \x1b[31mroom\n"
                self.send_response(status)
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = do_PUT = handle_any  # noqa: N815  the library's names

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self.url = f"http://localhost:{self.port}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def origins(self):
        return [request.origin for request in self.came]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def program(**options):
    made = Program(**options)
    try:
        yield made
    finally:
        made.close()
