"""The servers as a command reaches them: more patient than the receiver, and with errors a person can act on."""

import importlib
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg

from receiver import database
from receiver.revision import REVISION, SchemaBehind
from receiver.settings_servers import NO_POSTGRESQL, ConfigError, ledger_url

if TYPE_CHECKING:
    from receiver.settings import Settings

PATIENCE = timedelta(seconds=10)
"""How long a command waits for a lock somebody holds."""
LONGEST = timedelta(minutes=5)
"""How long one statement of a command may take."""
_RINGING = "receiver.cli.ringing"
_SETTINGS = "receiver.settings"
"""Imported when a command rings, or needs more than the ledger: all others would take twice as long to start."""


def configured() -> "Settings":
    """Read the configuration; secrets may be missing, since a command verifies nothing."""
    settings: Settings = importlib.import_module(_SETTINGS).load_settings(need_secrets=False)
    return settings


@contextmanager
def ledger(settings: "Settings | None" = None) -> Iterator[psycopg.Connection]:
    """Connect to the ledger, in autocommit mode, for as long as the block lasts; without settings find it alone.

    Raises: `ConfigError` without an address, `LedgerUnavailable` without an answer, `SchemaBehind` without tables.
    """
    url = settings.database_url if settings else ledger_url()
    if not url:
        raise ConfigError([NO_POSTGRESQL])
    try:
        with database.connect(url, lock=PATIENCE, statement=LONGEST) as connection:
            yield connection
    except psycopg.errors.UndefinedTable:
        raise SchemaBehind(
            f"the database lacks tables, this version needs schema {REVISION}; run `hookonce db upgrade`"
        ) from None


def ring(settings: "Settings") -> None:
    """Tell the workers that something is due; without Redis the sweep does, seconds later."""
    if settings.redis_url:
        importlib.import_module(_RINGING).ring(settings.redis_url)


def operator() -> str:
    """Name who runs this command, for the audit: the user of the process, which no variable can change."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
