"""Real PostgreSQL and real Valkey without Docker, for the development stack, the demo and the tests.

They live and die with the process that starts them: not even SIGKILL leaves one behind (on Linux). A program that
runs them writes servers.json into the data directory, so that the CLI in another terminal finds them.

`binaries` finds the programs, `process` runs a server in a locked directory, `postgres` and `valkey` say how each is
set up and stopped, and `errors` has the one error that they raise.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from hookonce.receiver.config.embedded_servers import STATE, Servers
from hookonce.receiver.dev.embedded.errors import EmbeddedError
from hookonce.receiver.dev.embedded.postgres import Postgres
from hookonce.receiver.dev.embedded.process import Lock, prepare
from hookonce.receiver.dev.embedded.valkey import Valkey
from hookonce.receiver.processes import spawn

__all__ = ["EmbeddedError", "Postgres", "Servers", "Valkey", "running", "servers"]


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
        if redis_url is None:
            valkey = Valkey.start(directory)
            stack.callback(valkey.stop)
            redis_url = valkey.url
        if database_url is None:
            postgres = Postgres.start(directory, durable=durable)
            stack.callback(postgres.stop)
            database_url = postgres.url
        found = Servers(database_url, redis_url)
        stack.callback((directory / STATE).unlink, missing_ok=True)
        _write_state(directory / STATE, found)
        yield found


def _write_state(path: Path, found: Servers) -> None:
    pid = os.getpid()
    state = {"servers": asdict(found), "pid": pid, "started": spawn.started(pid)}
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)  # a URL that was given may hold a password
    unfinished.write_text(json.dumps(state), encoding="utf-8")
    unfinished.replace(path)
