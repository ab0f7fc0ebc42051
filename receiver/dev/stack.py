"""The whole stack on embedded servers: `hookonce dev` and `hookonce demo`.

One process owns everything. PostgreSQL and Valkey are its children and the receiver and `hookonce worker`
run under its supervisor, so all end when it ends, even by SIGKILL. A server whose URL is configured is used
as it is and not started.

It also owns the socket that the receiver listens on: while that starts again, with another configuration, deliveries
wait a moment and none is refused.
"""

import contextlib
import errno
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import requests

from hookonce.receiver.config import dotenv_file, embedded_servers
from hookonce.receiver.config.admin import ADMIN_TOKEN
from hookonce.receiver.config.embedded_servers import Servers
from hookonce.receiver.config.settings import DESK_VARIABLE, Settings, load_settings
from hookonce.receiver.config.sources import TESTS
from hookonce.receiver.dev import embedded, generated_secrets
from hookonce.receiver.dev.embedded import EmbeddedError
from hookonce.receiver.ledger.database import migrate
from hookonce.receiver.processes import introduction
from hookonce.receiver.processes.child import OnLine
from hookonce.receiver.processes.supervisor import Child, Supervisor

HOST = "127.0.0.1"
"""The generated secrets are for this machine; who wants the world to reach it starts `hookonce serve`."""
GUNICORN = (
    *("-m", "gunicorn", "-c", "python:hookonce.receiver.web.gunicorn_conf"),
    *("--log-level", "warning", "--keep-alive", "1", "--graceful-timeout", "5"),
    "hookonce.receiver.app:from_environment()",
)
"""As `hookonce serve` starts it, without the checks that were made here; and quick to stop: an idle connection of a
sender would hold Ctrl-C up for as long as it is kept alive."""
RECEIVER, WORKER = "serve", "worker"
"""The children's names."""
POLL_INTERVAL = timedelta(milliseconds=50)
ANSWER_TIMEOUT = timedelta(seconds=10)


Beside = Callable[[threading.Event], None]


@dataclass
class Stack:
    """Running servers, migrated, and the environment that makes any command use them and the same secrets."""

    port: int
    settings: Settings
    environ: Mapping[str, str] = field(repr=False)
    found: Servers = field(repr=False)
    listener: socket.socket = field(repr=False)
    made_up: Mapping[str, str] = field(repr=False)
    """For each source whose secret was made up, what to set for it to have one of its own."""
    _supervisor: Supervisor | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The address at which the receiver listens."""
        return f"http://{HOST}:{self.port}"

    @property
    def is_logging_info(self) -> bool:
        """Whether the children log what goes well, too."""
        level = logging.getLevelNamesMapping().get(self.environ["HOOKONCE_LOG_LEVEL"].upper())
        return level is not None and level <= logging.INFO

    def hook(self, source: str) -> str:
        """Return the URL that a sender posts to."""
        return f"{self.url}/hooks/{source}"

    def refresh(self) -> None:
        """Read configuration and environment again. Raises: `ConfigError`, and all stays as it was."""
        dotenv_file.load()
        settings = load_settings(need_secrets=False)
        self.settings, self.environ, self.made_up = _in_force(settings, self.found, self.port)

    def restart(self, *names: str) -> None:
        """Have receiver or worker begin again with what is in force now; from any thread."""
        if self._supervisor is not None:
            self._supervisor.restart(*names)

    def run(
        self,
        on_line: OnLine,
        beside: Beside,
        *,
        until_over: bool = False,
        worker: Sequence[str] = (),
        patient: bool = False,
    ) -> int:
        """Keep receiver and worker alive until told to stop; return 0, or 78 when one of them cannot work.

        `worker` is the command of another worker than `hookonce worker`, as a framework has one. With `patient` one
        that cannot work waits for `restart`.
        `beside` runs in a thread of its own as soon as the receiver answers; with `until_over` all stops when
        it returns. Its argument is set when all has stopped without it.
        """
        ours = [sys.executable, "-m", "hookonce.receiver.cli", "worker", *(["--reloading"] * patient)]
        fd = self.listener.fileno()

        def environ() -> Mapping[str, str]:
            return self.environ

        def environ_of_receiver() -> Mapping[str, str]:
            return {**self.environ, "HOOKONCE_BIND": f"fd://{fd}", DESK_VARIABLE: "door"}

        children = [
            Child(RECEIVER, [sys.executable, *GUNICORN], environ_of_receiver, fds=[fd]),
            Child(WORKER, list(worker) or ours, environ, hangs_up=patient and not worker),
        ]
        self._supervisor = supervisor = Supervisor(children, on_line=on_line, patient=patient)
        ended = threading.Event()

        def accompany() -> None:
            try:
                self._await_receiver(ended)
                if not ended.is_set():
                    beside(ended)
            except Exception:
                if not ended.is_set():  # else it is expected that servers are gone
                    raise
            finally:
                if until_over:
                    supervisor.stop()

        thread = threading.Thread(target=accompany, daemon=True)
        thread.start()  # starts no process: those must have the main thread as their parent
        try:
            return supervisor.run()
        finally:
            ended.set()
            thread.join(ANSWER_TIMEOUT.total_seconds())

    def _await_receiver(self, ended: threading.Event) -> None:
        with session() as client:
            while not ended.is_set():
                with contextlib.suppress(requests.RequestException):
                    if client.get(f"{self.url}/readyz", timeout=ANSWER_TIMEOUT.total_seconds()).ok:
                        return
                ended.wait(POLL_INTERVAL.total_seconds())


@contextmanager
def stack(port: int, *, durable: bool = True) -> Iterator[Stack]:
    """Run the servers as long as the block lasts, with the configuration that is in force here.

    A source without a secret gets a generated one; with no source at all there are `stripe` and `github`.
    Raises: `EmbeddedError` (the port or the data directory is taken, a server does not start), `ConfigError`.
    """
    settings = load_settings(need_secrets=False)
    if embedded_servers.running(settings.data) is not None:
        raise EmbeddedError(
            f"{settings.data.resolve()} is in use by a running `hookonce dev`; "
            "stop it, or name another directory in HOOKONCE_DATA"
        )
    with (
        listening(port) as listener,
        embedded.servers(
            settings.data,
            durable=durable,
            database_url=settings.database_url or None,
            redis_url=settings.redis_url or None,
        ) as found,
    ):
        settings, environ, made_up = _in_force(settings, found, port)
        migrate.upgrade(found.database_url)
        yield Stack(port, settings, environ, found, listener, made_up)


def _in_force(
    settings: Settings, found: Servers, port: int
) -> tuple[Settings, dict[str, str], dict[str, str]]:
    """Return the configuration with the servers that run and secrets for who has none.

    Besides, the environment in which others read the same, and for each secret that was made up what to set instead.

    Raises: `ConfigError`.
    """
    made = generated_secrets.make(settings)
    token = generated_secrets.admin_token(settings)
    environ = _environment(found, made) | {ADMIN_TOKEN: token}
    in_force = load_settings({**os.environ, **environ})
    generated_secrets.save(in_force.data, port, made, token)
    named = {name: each.secret_places for name, each in settings.sources.items() if name in made}
    return in_force, environ, {name: named.get(name, generated_secrets.variable(name)) for name in made}


def listening(port: int) -> socket.socket:
    """Listen on a port. Raises: `EmbeddedError` if something does already."""
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen()
    except OSError as error:
        listener.close()
        why = "is in use" if error.errno == errno.EADDRINUSE else f"can't be used: {error.strerror}"
        raise EmbeddedError(f"port {port} {why}; choose another with --port") from None
    return listener


def free_port() -> int:
    """Find a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def session() -> requests.Session:
    """Return a client that talks to this machine itself, whatever proxy the environment names."""
    client = requests.Session()
    client.trust_env = False
    client.headers["Connection"] = "close"
    return client


def _environment(found: Servers, made: Mapping[str, str]) -> dict[str, str]:
    chosen = {
        "DATABASE_URL": found.database_url,
        "REDIS_URL": found.redis_url,
        "HOOKONCE_LOG_LEVEL": os.environ.get("HOOKONCE_LOG_LEVEL") or "INFO",
        "WEB_CONCURRENCY": os.environ.get("WEB_CONCURRENCY") or "1",
        TESTS: "1",
        introduction.DONE: "1",
        "PYTHONUNBUFFERED": "1",  # what a handler prints is shown when it prints it
    }
    return chosen | {generated_secrets.variable(source): secret for source, secret in made.items()}
