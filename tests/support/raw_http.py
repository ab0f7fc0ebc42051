"""HTTP as bytes: requests that no client library would send, and what comes back."""

import contextlib
import json
import socket
import time
from typing import NamedTuple

DEADLINE = 15


class Answer(NamedTuple):
    status: int
    headers: dict
    body: bytes

    @property
    def document(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.document.get("code") if self.body.startswith(b"{") else None


def request(method="POST", target="/hooks/stripe", headers=(), body=b"", version="HTTP/1.1"):
    """The bytes of a request, with Host and (if there is a body) Content-Length unless they are given."""
    lines = list(headers.items() if isinstance(headers, dict) else headers)
    names = {name.lower() for name, _ in lines}
    if "host" not in names:
        lines.insert(0, ("Host", "test"))
    if body and not names & {"content-length", "transfer-encoding"}:
        lines.append(("Content-Length", str(len(body))))
    head = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return f"{method} {target} {version}\r\n{head}\r\n".encode("latin-1", "surrogateescape") + body


def chunked(*chunks):
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


def connect(port, seconds=DEADLINE, context=None):
    client = socket.create_connection(("127.0.0.1", port), timeout=seconds)
    if context is None:
        return client
    with client:
        return context.wrap_socket(client)


def exchange(port, data, *, half_close=False, seconds=DEADLINE, context=None):
    """Send bytes over a connection of their own; give the one answer, None if the server only hangs up."""
    with connect(port, seconds, context) as connection:
        answers = converse(connection, data, half_close=half_close)
        return next(answers, None)


def converse(connection, data, *, half_close=False):
    """Send bytes and give every answer as it comes; the final ones only."""
    with contextlib.suppress(OSError):  # it may answer and hang up before it has read all
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
    pending = b""
    while True:
        answer, pending = _read(connection, pending)
        if answer is None:
            return
        if answer.status >= 200:
            yield answer


def _read(connection, pending):
    until = time.monotonic() + (connection.gettimeout() or DEADLINE)
    while b"\r\n\r\n" not in pending:
        more = _receive(connection, until)
        if not more:
            return None, pending
        pending += more
    head, _, pending = pending.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    size = int(headers.get("content-length", 0)) if not status_line.startswith("HTTP/1.1 1") else 0
    while len(pending) < size:
        more = _receive(connection, until)
        if not more:  # HEAD, or cut off
            break
        pending += more
    return Answer(int(status_line.split()[1]), headers, pending[:size]), pending[size:]


def _receive(connection, until):
    connection.settimeout(max(0.01, until - time.monotonic()))
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""
