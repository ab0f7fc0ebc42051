"""`hookonce serve`: gunicorn with hookonce's settings."""

import errno
import os
import re
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import closing, suppress

import click

from hookonce.receiver.cli.connections import AWAY, UNREACHABLE, prepare
from hookonce.receiver.cli.desk import own_desk
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.servers import require_own_port
from hookonce.receiver.config.settings import DESK_VARIABLE, Settings, load_settings, require_servers
from hookonce.receiver.config.suggestions import ALERTS_SOURCE
from hookonce.receiver.desk.pauses import list_handlers
from hookonce.receiver.processes.cores import cores, processes
from hookonce.receiver.processes.introduction import introduce, named

_ADDRESS = re.compile(r"(?:^|,)\s*(?:tcp://)?(?!unix:)(\[[0-9A-Fa-f:.]+\]|[\w.-]*):(\d{1,5})(?=\s*(?:,|$))")
"""Hosts and ports of `--bind`; files and descriptors are gunicorn's to judge."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--bind", "-b", help="Address of deliveries and commands; default 0.0.0.0:$PORT, port 8000; or `off`."
)
@click.option("--port", type=click.IntRange(1, 65_535), help="The port alone: `--bind 0.0.0.0:PORT`.")
@click.option(
    "--desk",
    help="Address of the console, the API and metrics; default 127.0.0.1:8001; `door`: that of deliveries; or `off`.",
)
@click.argument("gunicorn_options", nargs=-1, type=click.UNPROCESSED)
def serve(bind: str | None, port: int | None, desk: str | None, gunicorn_options: tuple[str, ...]) -> None:
    """Receive webhooks until stopped. Further options go to gunicorn.

    Senders reach /hooks and /commands at one address, /api, /admin and /metrics are at another.

    Checks configuration and schema first: exit 78 if they are not right. A database that is merely away is
    waited for, with 503 to the senders.
    """
    settings = load_settings()
    require_servers(settings)
    _require_numbers("WEB_CONCURRENCY", "PORT")
    if bind and port:
        raise click.UsageError("--port is a part of --bind; give one of the two")
    door = bind or (f"0.0.0.0:{port}" if port else os.environ.get("HOOKONCE_BIND"))
    desk = desk or settings.desk
    where = _where(door, desk, gunicorn_options)
    handlers: set[str] | None = None
    try:
        prepare(settings.database_url)
        handlers = _handlers(settings)
    except AWAY:
        tell("hookonce: the database does not answer; senders get 503 until it does")
    _introduce(settings, where, handlers)
    argv = [
        sys.executable,
        "-m",
        "gunicorn",
        "-c",
        "python:hookonce.receiver.web.gunicorn_conf",
        *gunicorn_options,
    ]
    argv.append("hookonce.receiver.app:from_environment()")
    if not any(each.startswith(("-c", "--config")) for each in gunicorn_options):
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until our settings' `when_ready`
    addresses = {DESK_VARIABLE: desk} | ({"HOOKONCE_BIND": door} if door else {})
    os.execve(sys.executable, argv, os.environ | addresses)  # noqa: S606  gunicorn takes our place, and our signals


def _introduce(settings: Settings, where: Sequence[str], handlers: set[str] | None) -> None:
    number = os.environ.get("WEB_CONCURRENCY")
    running = "no worker has registered yet; `hookonce worker` runs them"
    introduce(
        "serve",
        "receives webhooks until Ctrl-C",
        [
            ("listens", where[0]),
            *[("desk", each) for each in where[1:]],
            (
                "processes",
                f"{number}, as WEB_CONCURRENCY says"
                if number
                else f"{processes(cores())}, on {cores()} cores; WEB_CONCURRENCY sets another number",
            ),
            ("sources", named(settings.sources, "none; `hookonce new` makes one")),
            *([("commands", named(settings.commands, ""))] if settings.commands else []),
            (
                "handlers",
                "not known while the database is away" if handlers is None else named(handlers, running),
            ),
        ],
    )


def _where(door: str | None, desk: str, gunicorn_options: tuple[str, ...]) -> Sequence[str]:
    """Return where gunicorn is to listen, for the desk too, once that is free. Raises: `ClickException`, `ConfigError`.

    gunicorn would try five times, and log each; what it alone knows of, as sockets it is handed, is left to it.
    """
    if os.environ.get("LISTEN_FDS") or os.environ.get("GUNICORN_CMD_ARGS"):
        return ["where gunicorn is told to"]
    where = door or f"0.0.0.0:{os.environ.get('PORT') or 8000}"
    if where == desk == "off":
        raise click.UsageError("nothing would listen: --bind and --desk are off")
    require_own_port(desk, [port for _, port in _ADDRESS.findall(where)])
    if "--reuse-port" not in gunicorn_options:
        for each, option in ((where, "--port or --bind HOST:PORT"), (desk, "--desk HOST:PORT")):
            for host, port in _ADDRESS.findall(each):
                _require_free(host.strip("[]") or "0.0.0.0", int(port), option)  # noqa: S104  gunicorn's default
    return [where, desk]


def _require_free(host: str, port: int, option: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gunicorn: a port just left is free
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            why = (
                f"port {port} is taken at {host} by another process; end that one"
                if getattr(error, "errno", None) == errno.EADDRINUSE
                else f"can't listen at {host}:{port}: {getattr(error, 'strerror', None) or error}"
            )
            raise click.ClickException(f"{why}, or listen elsewhere with {option}") from None


def _require_numbers(*variables: str) -> None:
    """Raise `ConfigError` for what gunicorn's settings would fail to read."""
    wrong = [name for name in variables if not (os.environ.get(name) or "1").isdecimal()]
    if wrong:
        raise ConfigError([f"{name} is {os.environ[name]!r}; expected a number" for name in wrong])


def _handlers(settings: Settings) -> set[str] | None:
    """Return the handlers that workers have announced; None where they can't be read."""
    with suppress(*UNREACHABLE), own_desk(settings) as here:
        found = here.ask(list_handlers).data
        return {each.name for each in found if any(one.place != ALERTS_SOURCE for one in each.takes)}
    return None
