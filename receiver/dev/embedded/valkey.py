"""A private Valkey (or Redis) for development, demo and tests, on a unix socket that only we can open.

It keeps nothing on disk: the window and the notifications are accelerators, the ledger is the truth.
"""

import os
import secrets
import signal
import socket
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import quote

from hookonce.receiver.dev.embedded import binaries
from hookonce.receiver.dev.embedded.postgres import MAX_SOCKET_PATH
from hookonce.receiver.dev.embedded.process import Lock, Process, Server, prepare

SETTINGS = {
    "save": "",
    "appendonly": "no",
    "maxmemory-policy": "noeviction",  # any other may silently lose RQ's queue
    "unixsocketperm": "700",
    "bind": "127.0.0.1",
}
ANSWER_TIMEOUT = timedelta(seconds=2)


class Valkey(Server):
    """A Valkey server that we started; made by `Valkey.start`, ended by `stop` or with our process."""

    SHUTDOWN_STEPS = ((signal.SIGTERM, timedelta(seconds=5)), (signal.SIGKILL, timedelta(seconds=5)))

    def __init__(self, directory: Path, *, databases: int, tcp_port: int | None) -> None:
        self._directory = prepare(directory)
        self._databases = databases
        self._tcp_port = tcp_port
        self._password = secrets.token_urlsafe() if tcp_port else ""
        self._lock = Lock(self._directory / "valkey.lock")
        try:
            self._binary = binaries.valkey()
            self.socket = self._socket_path()
            self._process = self._launch()
        except BaseException:
            self._leave()
            raise

    @classmethod
    def start(cls, directory: Path, *, databases: int = 16, tcp_port: int | None = None) -> Self:
        """Start a server and return when it answers.

        `tcp_port` makes it listen on 127.0.0.1 too, with a password: see `tcp_url`. Call it from a thread
        that lives as long as the server shall.

        Raises:
            EmbeddedError: there is no Valkey or Redis, the directory is in use, or the server does not start.

        """
        return cls(directory, databases=databases, tcp_port=tcp_port)

    @property
    def url(self) -> str:
        """The URL over the unix socket, as redis-py takes it; add `?db=N` for another logical database."""
        password = f":{self._password}@" if self._password else ""
        return f"unix://{password}{quote(str(self.socket))}"

    @property
    def tcp_url(self) -> str:
        """The URL over TCP, with its password; only if started with a `tcp_port`."""
        return f"redis://:{self._password}@127.0.0.1:{self._tcp_port}"

    def restart(self) -> None:
        """Stop the server if it runs and start an empty one: same URL."""
        self._process.stop(self.SHUTDOWN_STEPS)
        self._process = self._launch()

    def _socket_path(self) -> Path:
        path = self._directory / "redis.sock"
        if len(os.fsencode(path)) > MAX_SOCKET_PATH:
            self._short = Path(tempfile.mkdtemp(prefix="hookonce-", dir="/tmp"))
            path = self._short / path.name
        return path

    def _launch(self) -> Process:
        self.socket.unlink(missing_ok=True)
        settings = SETTINGS | {
            "port": str(self._tcp_port or 0),
            "unixsocket": str(self.socket),
            "dir": str(self._directory),
            "databases": str(self._databases),
            "requirepass": self._password,
        }
        lines = [f"{name} {_quoted(value)}\n" for name, value in settings.items()]
        config = self._directory / "valkey.conf"  # not arguments: those are for everyone to read
        config.touch(mode=0o600)
        config.write_text("".join(lines), encoding="utf-8")
        log = self._directory / "valkey.log"
        argv = [str(self._binary), str(config)]
        process = Process(argv, log=log, lock=self._lock, on_death=signal.SIGKILL)
        return process.wait_until(self._ready)

    def _ready(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(ANSWER_TIMEOUT.total_seconds())
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
