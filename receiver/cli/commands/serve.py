"""`hookonce serve`: gunicorn with hookonce's settings."""

import os
import sys

import click
import psycopg

from hookonce.receiver.config.concurrency import cores, processes
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings, require_servers
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.maintenance import partitions
from hookonce.receiver.monitoring import health


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--bind", help="Where to listen; default 0.0.0.0:$PORT, port 8000.")
@click.argument("gunicorn_options", nargs=-1, type=click.UNPROCESSED)
def serve(bind: str | None, gunicorn_options: tuple[str, ...]) -> None:
    """Receive webhooks until stopped. Further options go to gunicorn.

    Checks configuration and schema first: exit 78 if they are not right. A database that is merely away is
    waited for, with 503 to the senders.
    """
    settings = load_settings()
    require_servers(settings)
    _require_numbers("WEB_CONCURRENCY", "PORT")
    try:
        health.require_schema(settings.database_url)
        _make_partitions(settings.database_url)
    except LedgerUnavailable:
        click.echo("hookonce: the database does not answer; senders get 503 until it does", err=True)
    if not os.environ.get("WEB_CONCURRENCY"):
        click.echo(
            f"hookonce: {processes(cores())} processes receive, on {cores()} cores: PostgreSQL and workers need half "
            "of them, and two outlive a crash of one; WEB_CONCURRENCY sets another number",
            err=True,
        )
    if bind:
        os.environ["HOOKONCE_BIND"] = bind
    argv = [
        sys.executable,
        "-m",
        "gunicorn",
        "-c",
        "python:hookonce.receiver.web.gunicorn_conf",
        *gunicorn_options,
    ]
    argv.append("hookonce.receiver.app:from_environment()")
    os.execv(sys.executable, argv)  # noqa: S606  gunicorn takes our place, and our signals


def _require_numbers(*variables: str) -> None:
    """Raise `ConfigError` for what gunicorn's settings would fail to read."""
    wrong = [name for name in variables if not (os.environ.get(name) or "1").isdecimal()]
    if wrong:
        raise ConfigError([f"{name} is {os.environ[name]!r}; expected a number" for name in wrong])


def _make_partitions(url: str) -> None:
    try:
        with connections.connect(url) as connection:
            partitions.create_partitions(connection)
    except psycopg.Error as error:
        click.echo(
            f"hookonce: partitions are left to `db upgrade` and the sweep: {type(error).__name__}", err=True
        )
