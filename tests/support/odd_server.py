"""A server that answers whatever a test wants, byte by byte if need be, and keeps what it was asked."""

import contextlib
import socket
import threading


class OddServer:
    """Answers each connection by `answer(connection, request)`, in a thread; `asked` holds the requests as bytes."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        with connection, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                if not (piece := connection.recv(65536)):
                    return
                head += piece
            self.asked.append(head)
            self.answer(connection, head)


def reply(status, body=b"", kind="application/json", **headers):
    """Return bytes of an answer after which the connection ends."""
    said = {"Content-Type": kind, "Content-Length": len(body), "Connection": "close", **headers}
    lines = [
        f"HTTP/1.1 {status} Odd",
        *(f"{name.replace('_', '-')}: {value}" for name, value in said.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextlib.contextmanager
def answering(*answers):
    """A server that gives these answers (bytes, or functions of a connection) in turn, the last one again and again."""
    left = list(answers)

    def answer(connection, _request):
        given = left.pop(0) if len(left) > 1 else left[0]
        if callable(given):
            given(connection)
        else:
            connection.sendall(given)

    server = OddServer(answer)
    try:
        yield server
    finally:
        server.close()
