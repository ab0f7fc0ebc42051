"""The servers as a command reaches them: more patient than the receiver, and with errors a person can act on."""

import importlib
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg

from receiver import database
from receiver.revision import REVISION, SchemaBehind
from receiver.settings import Settings, load_settings, require_servers

PATIENCE = timedelta(seconds=10)
"""How long a command waits for a lock somebody holds."""
LONGEST = timedelta(minutes=5)
"""How long one statement of a command may take."""
_RINGING = "receiver.cli.ringing"
"""Imported when a command rings: with Redis's client the start of all others would take twice as long."""


def configured() -> Settings:
    """Read the configuration; secrets may be missing, since a command verifies nothing."""
    return load_settings(need_secrets=False)


@contextmanager
def ledger(settings: Settings) -> Iterator[psycopg.Connection]:
    """Connect to the ledger, in autocommit mode, for as long as the block lasts.

    Raises: `ConfigError` without an address, `LedgerUnavailable` without an answer, `SchemaBehind` without tables.
    """
    require_servers(settings, redis=False)
    try:
        with database.connect(settings.database_url, lock=PATIENCE, statement=LONGEST) as connection:
            yield connection
    except psycopg.errors.UndefinedTable:
        raise SchemaBehind(
            f"the database lacks tables, this version needs schema {REVISION}; run `hookonce db upgrade`"
        ) from None


def ring(settings: Settings) -> None:
    """Tell the workers that something is due; without Redis the sweep does, seconds later."""
    if settings.redis_url:
        importlib.import_module(_RINGING).ring(settings.redis_url)


def operator() -> str:
    """Name who runs this command, for the audit: the user of the process, which no variable can change."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
