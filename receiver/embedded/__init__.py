"""Real PostgreSQL and real Valkey without Docker, for `hookonce dev`, the demo and the tests.

They live and die with the process that starts them: not even SIGKILL leaves one behind (on Linux). Whoever
runs them writes `servers.json` into the data directory, so that the CLI in another terminal finds them.
"""

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from receiver import spawn
from receiver.embedded.errors import EmbeddedError
from receiver.embedded.postgres import Postgres
from receiver.embedded.process import Lock, prepare
from receiver.embedded.valkey import Valkey

__all__ = ["EmbeddedError", "Postgres", "Servers", "Valkey", "running", "servers"]

STATE = "servers.json"


@dataclass(frozen=True)
class Servers:
    """Where the ledger's database and Redis are: a libpq URL and a redis-py URL."""

    database_url: str
    redis_url: str


@contextmanager
def servers(
    directory: Path, *, durable: bool = True, database_url: str | None = None, redis_url: str | None = None
) -> Iterator[Servers]:
    """Run both servers as long as the block lasts; a server whose URL is given is not started.

    `durable` is as in `Postgres.start`. The directory keeps the database for the next time.

    Raises:
        EmbeddedError: a server is not installed or does not start, or a process (named) uses the directory.

    """
    directory = prepare(directory)
    with contextlib.ExitStack() as stack:
        lock = Lock(directory / "servers.lock")
        stack.callback(lock.release)
        sockets = []
        if redis_url is None:
            valkey = Valkey.start(directory)
            stack.callback(valkey.stop)
            redis_url = valkey.url
            sockets.append(valkey.socket)
        if database_url is None:
            postgres = Postgres.start(directory, durable=durable)
            stack.callback(postgres.stop)
            database_url = postgres.url
            sockets.append(postgres.socket)
        found = Servers(database_url, redis_url)
        stack.callback((directory / STATE).unlink, missing_ok=True)
        _write_state(directory / STATE, found, sockets)
        yield found


def running(directory: Path) -> Servers | None:
    """Return what some process runs on this directory now by `servers`; None if none does."""
    try:
        state = json.loads((directory / STATE).read_text(encoding="utf-8"))
        alive = spawn.started(state["pid"]) == state["started"] and all(map(_listening, state["sockets"]))
        return Servers(**state["servers"]) if alive else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _write_state(path: Path, found: Servers, sockets: list[Path]) -> None:
    pid = os.getpid()
    owner = {"pid": pid, "started": spawn.started(pid)}
    state = {"servers": asdict(found), "sockets": list(map(str, sockets)), **owner}
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)  # a URL that was given may hold a password
    unfinished.write_text(json.dumps(state), encoding="utf-8")
    unfinished.replace(path)


def _listening(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0
