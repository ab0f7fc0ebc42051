"""A private Valkey (or Redis) for development, demo and tests, on a unix socket that only we can open.

It keeps nothing on disk: the window and the notifications are accelerators, the ledger is the truth.
"""

import os
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

    def __init__(self, directory: Path, *, databases: int) -> None:
        self._directory = prepare(directory)
        self._databases = databases
        self._lock = Lock(self._directory / "valkey.lock")
        try:
            self._binary = binaries.valkey()
            self.socket = self._socket_path()
            self._process = self._launch()
        except BaseException:
            self._leave()
            raise

    @classmethod
    def start(cls, directory: Path, *, databases: int = 16) -> Self:
        """Start a server and return when it answers. Call it from a thread that lives as long as the server shall.

        Raises:
            EmbeddedError: there is no Valkey or Redis, the directory is in use, or the server does not start.

        """
        return cls(directory, databases=databases)

    @property
    def url(self) -> str:
        """The URL over the unix socket, as redis-py takes it; add `?db=N` for another logical database."""
        return f"unix://{quote(str(self.socket))}"

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
            "port": "0",
            "unixsocket": str(self.socket),
            "dir": str(self._directory),
            "databases": str(self._databases),
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
