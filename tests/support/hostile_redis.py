"""A server that speaks Redis's protocol and means no good: answers that no real server would give."""

import contextlib
import socket
import threading

from hookonce.receiver.redis import dedup_window, rate_limits
from hookonce.receiver.redis.client import Script

HELLO = b"%1\r\n$5\r\nproto\r\n:3\r\n"
OK = b"+OK\r\n"
SCRIPTS = {
    "window": dedup_window._EXCHANGE,  # noqa: SLF001
    "limit": rate_limits._ASK,  # noqa: SLF001
}


def honest(phase, command):
    """What an empty Redis would answer."""
    if phase in {"claim", "settle"}:
        keys, first = int(command[2]), int(command[3 + int(command[2])])
        said = b"\n".join([b"0"] * bool(first) + [b""] * (keys - first))
        return b"$%d\r\n%b\r\n" % (len(said), said)
    if command[0] in {b"SMEMBERS", b"HGETALL"}:
        return b"*0\r\n"
    return b":0\r\n" if phase == "limit" else OK


class HostileRedis:
    """Listens on a unix socket in a directory, or at a port as the node of a cluster.

    `says(phase, command)` makes each answer: bytes, or pieces of bytes.

    The phase is `hello` for what a client says first, `claim`, `settle` or `limit` for our scripts, and else `other`.
    None hangs up.
    """

    def __init__(self, directory=None):
        self.says = honest
        self.ended = threading.Event()
        self._phases = {
            Script(None, text)._digest.encode(): phase  # noqa: SLF001
            for phase, text in SCRIPTS.items()
        }
        self._phases |= {text.encode(): phase for phase, text in SCRIPTS.items()}
        if directory is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.url = f"redis+cluster://127.0.0.1:{self._listener.getsockname()[1]}"
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(directory / "hostile.sock"))
            self._listener.listen(64)
            self.url = f"unix://{directory / 'hostile.sock'}?db=1"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._clients = []
        self._threads[0].start()

    def close(self):
        self.ended.set()
        for each in (self._listener, *self._clients):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                self._threads.append(threading.Thread(target=self._serve, args=[client], daemon=True))
                self._threads[-1].start()

    def _serve(self, client):
        with client, contextlib.suppress(OSError, ValueError), client.makefile("rb") as asked:
            while line := asked.readline():
                command = [asked.read(int(asked.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
                answer = self._answer(command)
                if answer is None:
                    return
                for piece in [answer] if isinstance(answer, bytes) else answer:
                    client.sendall(piece)

    def _answer(self, command):
        phase = self._phases.get(command[1]) if command[0] in {b"EVALSHA", b"EVAL"} else None
        if phase == "window":  # the keys to claim follow others
            phase = "claim" if int(command[2]) > int(command[3 + int(command[2])]) else "settle"
        if phase is None:
            phase = "hello" if command[0] in {b"HELLO", b"CLIENT", b"SELECT", b"PING", b"AUTH"} else "other"
        answer = self.says(phase, command)
        if answer is OK and phase == "hello":
            return {b"HELLO": HELLO, b"PING": b"+PONG\r\n"}.get(command[0], OK)
        return answer
