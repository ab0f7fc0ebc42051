"""A private Valkey (or Redis) for development, demo and tests, on a unix socket that only we can open.

It keeps nothing on disk: the window and the bell are accelerators, the ledger is the truth.
"""

import os
import secrets
import shutil
import signal
import socket
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import quote

from receiver.embedded import binaries
from receiver.embedded.postgres import LONGEST_SOCKET_PATH
from receiver.embedded.process import Lock, Process, prepare

SETTINGS = {
    "save": "",
    "appendonly": "no",
    "maxmemory-policy": "noeviction",  # any other may silently lose RQ's queue
    "unixsocketperm": "700",
    "bind": "127.0.0.1",
}
SHUTDOWN = ((signal.SIGTERM, timedelta(seconds=5)), (signal.SIGKILL, timedelta(seconds=5)))
ANSWERS_WITHIN = timedelta(seconds=2)


class Valkey:
    """A Valkey server that we started; made by `Valkey.start`, ended by `stop` or with our process."""

    def __init__(self, directory: Path, *, databases: int, tcp_port: int | None) -> None:
        self._directory = prepare(directory)
        self._databases = databases
        self._tcp_port = tcp_port
        self._password = secrets.token_urlsafe() if tcp_port else ""
        self._lock = Lock(self._directory / "valkey.lock")
        self._short: Path | None = None
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

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the server still runs."""
        return self._process.alive

    def stop(self) -> None:
        """End the server; what it held is gone."""
        self._process.stop(SHUTDOWN)
        self._leave()

    def kill(self, which: signal.Signals = signal.SIGKILL) -> None:
        """Crash (SIGKILL), freeze (SIGSTOP) or thaw (SIGCONT) the server."""
        self._process.kill(which)

    def restart(self) -> None:
        """Stop the server if it runs and start an empty one: same URL."""
        self._process.stop(SHUTDOWN)
        self._process = self._launch()

    def _leave(self) -> None:
        self._lock.release()
        if self._short:
            shutil.rmtree(self._short, ignore_errors=True)

    def _socket_path(self) -> Path:
        path = self._directory / "redis.sock"
        if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
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
                client.settimeout(ANSWERS_WITHIN.total_seconds())
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
