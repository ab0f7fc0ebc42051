"""The servers as a command reaches them: more patient than the receiver, and with errors a person can act on."""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import click
import psycopg

from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.servers import NO_POSTGRESQL, ledger_url
from hookonce.receiver.ledger.database import connections, schema_version

if TYPE_CHECKING:
    from hookonce.receiver.config.settings import Settings

COMMAND_LOCK_TIMEOUT = timedelta(seconds=10)
"""How long a command waits for a lock somebody holds."""
COMMAND_STATEMENT_TIMEOUT = timedelta(minutes=5)
"""How long one statement of a command may take."""

UNREACHABLE: Final = (psycopg.Error, connections.LedgerUnavailable, schema_version.SchemaBehind, ConfigError)
"""Errors that keep a command from the ledger."""
AWAY: Final = (psycopg.OperationalError, connections.LedgerUnavailable)
"""Errors of a ledger that may be there again in a moment."""
_AT = "hookonce.at"


def ask_at(named: str | None) -> None:
    """Have this command ask another inbox: a profile, by its name or URL."""
    click.get_current_context().meta[_AT] = named


def at() -> str | None:
    """Return which other inbox is asked; None for the ledger of this machine's configuration."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_AT) if context else None


def _require_here() -> None:
    """Raise `click.UsageError` where another inbox is asked for what only its own machine can do."""
    if named := at():
        raise click.UsageError(
            f"this needs the ledger itself, which --at {named} does not reach; run it there"
        )


def here() -> str:
    """Return the URL of this machine's ledger. Raises `ConfigError` where nothing says it."""
    _require_here()
    return ledger_url()


def configured() -> "Settings":
    """Read the configuration; secrets may be missing, since a command verifies nothing."""
    _require_here()
    from hookonce.receiver.config.settings import (
        load_settings,  # a listing does without, and starts twice as fast
    )

    return load_settings(need_secrets=False)


@contextmanager
def ledger(
    settings: "Settings | None" = None, patience: timedelta | None = None
) -> Iterator[psycopg.Connection]:
    """Connect to the ledger, in autocommit mode, for as long as the block lasts; without settings find it alone.

    With `patience` no lock or statement may take longer. Raises: `ConfigError` without an address, `LedgerUnavailable`
    without an answer, `SchemaBehind` without tables.
    """
    url = settings.database_url if settings else here()
    if not url:
        raise ConfigError([NO_POSTGRESQL])
    with connections.connect(
        url, lock=patience or COMMAND_LOCK_TIMEOUT, statement=patience or COMMAND_STATEMENT_TIMEOUT
    ) as connection:
        schema_version.require_schema(connection)
        yield connection


def prepare(url: str) -> None:
    """Require the schema, and make the partitions of the next days, where nobody has yet and this role may.

    Raises: `SchemaBehind`, `LedgerUnavailable`.
    """
    from hookonce.receiver.ledger.maintenance import partitions  # `hookonce serve` alone needs these
    from hookonce.receiver.monitoring import health

    health.require_schema(url)
    try:
        with connections.connect(url) as connection:
            partitions.create_partitions(connection)
    except psycopg.Error as error:
        tell(f"hookonce: partitions are left to `db upgrade` and the sweep: {type(error).__name__}")


def notify_workers(settings: "Settings") -> None:
    """Notify the workers that something is due; without Redis the sweep does, seconds later."""
    if not settings.redis_url:
        return
    from hookonce.receiver.redis.client import RedisUnavailable, connect  # few commands need Redis
    from hookonce.receiver.redis.work_queue import WorkQueue

    try:
        with connect(settings.redis_url) as client:
            WorkQueue(client).notify_if_idle()
    except RedisUnavailable as error:
        tell(f"workers can't be notified ({error}); the sweep finds what is due")


def registered_workers() -> int | None:
    """Return how many workers are registered in Redis; None if that is not known: Redis is away, or elsewhere."""
    if at() or not (url := configured().redis_url):
        return None
    from hookonce.receiver.redis.client import RedisUnavailable, connect  # few commands need Redis
    from hookonce.receiver.redis.workers import alive

    with suppress(RedisUnavailable), connect(url) as client:
        return alive(client)
    return None


def operator() -> str:
    """Return who runs this command, for the audit: the user of the process, which no variable can change."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
