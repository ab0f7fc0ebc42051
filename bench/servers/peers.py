"""What users would pick instead, run in an environment of its own: `make bench-peers` installs it.

Starlette and FastAPI on uvicorn and dj-stripe on Django and gunicorn, two processes each, in a database of their own.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager

import psycopg

from bench.load.sending import ROOT, BadAnswers
from bench.peers.fastapi_table import TABLE
from bench.servers.stack import STOCK_GUNICORN, Server, Stack, await_answer, database, free_port, stop
from hookonce.receiver.config.server_urls import libpq_url

PYTHON = ROOT / ".venv-peers" / "bin" / "python"
NAME = "peers"


def are_installed() -> bool:
    """Whether the environment of the peers is there."""
    return PYTHON.is_file()


class Peers:
    """A database for the peers on the servers of a benchmark, and the peers themselves."""

    def __init__(self, stack: Stack) -> None:
        self.database_url = database(libpq_url(stack.postgres.url), NAME)
        with psycopg.connect(database(stack.postgres.url, "postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT FROM pg_database WHERE datname = 'peers'").rowcount:
                connection.execute("CREATE DATABASE peers")
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(TABLE)
        self._environ = os.environ | {
            "PEER_DATABASE_DSN": self.database_url,
            "PEER_DATABASE_URL": self.database_url.replace("postgresql:", "postgresql+psycopg:", 1),
        }
        self._log = (stack.directory / "processes.log").open("ab")

    def starlette(self) -> AbstractContextManager[Server]:
        """Run the sixty lines of Starlette and asyncpg on uvicorn as long as the block lasts."""
        return self._uvicorn("bench.peers.starlette_receiver:app")

    def fastapi(self) -> AbstractContextManager[Server]:
        """Run the receiver of FastAPI and SQLAlchemy on uvicorn as long as the block lasts."""
        return self._uvicorn("bench.peers.fastapi_receiver:app")

    @contextlib.contextmanager
    def _uvicorn(self, application: str) -> Iterator[Server]:
        port = free_port()
        command = ("-m", "uvicorn", "--workers", "2", "--no-access-log", "--log-level", "warning")
        with self._run(*command, "--port", str(port), application, port=port) as server:
            yield server

    @contextlib.contextmanager
    def djstripe(self) -> Iterator[tuple[Server, str]]:
        """Run dj-stripe's view on gunicorn as long as the block lasts; gives the path of its endpoint, too."""
        made = subprocess.run(  # noqa: S603  our own program
            [PYTHON, "-m", "bench.peers.djstripe_site"],
            cwd=ROOT,
            env=self._environ | {"PGOPTIONS": "-c synchronous_commit=off"},  # its migrations are many
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            check=False,
        )
        if made.returncode:
            raise BadAnswers("dj-stripe could not be set up; see processes.log")
        port = free_port()
        threads = ("--worker-class", "gthread", "--threads", "8")  # Django keeps a connection for each thread
        command = (*STOCK_GUNICORN, *threads, "--workers", "2", "--bind", f"127.0.0.1:{port}")
        with self._run(*command, "bench.peers.djstripe_site:application", port=port) as server:
            yield server, made.stdout.split()[-1]

    @contextlib.contextmanager
    def _run(self, *arguments: str, port: int) -> Iterator[Server]:
        process = subprocess.Popen(  # noqa: S603  what `make bench-peers` has installed
            [PYTHON, *arguments],
            cwd=ROOT,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        try:
            await_answer(port, process)
            yield Server(port, process.pid)
        finally:
            stop(process)
