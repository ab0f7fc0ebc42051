"""What a handler may not do with the connection it is given: end its transaction, or leave a child on it.

A handler may take the driver's own connection (`tx.connection.driver_connection`) for what SQLAlchemy lacks. So the
transaction is begun there before the handler is called: psycopg's `transaction()` makes a savepoint of it then, and
would commit otherwise.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from psycopg.pq import TransactionStatus
from sqlalchemy import Connection

from receiver import engines

STAINED = "stained"
"""The key in a connection's `info` that says: a handler has changed the session."""
UNCHAINED = "unchained"
"""Says: a handler has changed its transaction in a way that a chained one would take over."""
MOVED = "moved"
"""Says: a handler has changed a setting, maybe one by which our own statements would go elsewhere (`HOME`)."""
HOME = """
SET LOCAL session_authorization TO DEFAULT; SET LOCAL role TO DEFAULT; SET LOCAL search_path TO DEFAULT;
SET LOCAL statement_timeout TO DEFAULT
"""
"""Leads our statements back to the ledger, as whom we connected, in a transaction whose handler has `MOVED`."""

_REFUSED = ("commit", "rollback")  # and `close`, which of the driver's connection is SQLAlchemy's to call
_COMMENTS = r"(?:\s|--[^\n]*\n|(?>/\*.*?\*/))*+"
_STAINS_SESSION = re.compile(
    rf"(?:^|;){_COMMENTS}(set\s+(?!local\b|constraints\b|transaction\b)|(reset|listen|discard|prepare|declare)\b)"
    r"|set_config\s*\(|pg_(try_)?advisory_lock|\bpg_temp\.|\btemp(orary)?\s+(table|view|sequence)"
    r"|(?<!insert\s)\binto\s+temp(orary)?\s",
    re.IGNORECASE | re.DOTALL,
)
_ENDS_TRANSACTION = re.compile(
    rf"{_COMMENTS};*{_COMMENTS}"
    r"(commit|end|abort|begin|start\s+transaction|prepare\s+transaction|rollback(?!\s+(work\s+|transaction\s+)?to\b))\b"
    r"|.*?;\s*(commit|abort|rollback)(\s+(work|transaction))?(\s+and\s+(no\s+)?chain)?\s*(;|$)",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES_SETTING = re.compile(
    rf"(?:^|;){_COMMENTS}set\s+(?!constraints\b|transaction\b)|set_config\s*\(", re.IGNORECASE | re.DOTALL
)
_CHANGES_TRANSACTION = re.compile(
    r"\bset\s+transaction\b|transaction_(isolation|read_only|deferrable)", re.IGNORECASE
)


class TransactionEnded(Exception):  # noqa: N818  what was found
    """A handler ended its transaction: what it wrote stays, so another attempt would write it again."""


@contextmanager
def guarded(connection: Connection) -> Iterator[None]:
    """Keep the handler from ending the transaction it is given; savepoints work. What it sets up goes with it.

    Raises `TransactionEnded` where it has managed to, however the block ends.
    """
    driver, transaction = engines.raw(connection), connection.get_transaction()
    options, factories = connection.get_execution_options(), (driver.row_factory, driver.cursor_factory)
    if driver.pgconn.transaction_status == TransactionStatus.IDLE:
        driver.execute("")  # no query, which would settle the isolation level
    for each in (connection, driver):
        each.__dict__.update(dict.fromkeys(_REFUSED, _refuse))
    connection.__dict__["close"] = _refuse
    try:
        yield
    finally:
        for each in (connection, driver):
            for name in (*_REFUSED, "close"):
                each.__dict__.pop(name, None)
        driver.row_factory, driver.cursor_factory = factories
        if connection.get_execution_options() != options and not connection.invalidated:
            connection.info[STAINED] = True
        is_idle = driver.pgconn.transaction_status == TransactionStatus.IDLE
        if is_idle or not (transaction and transaction.is_active):
            raise TransactionEnded("the handler ended the transaction it was given; its writes may be there")


@contextmanager
def at_home() -> Iterator[None]:
    """End a child that a handler forked and let return: it must not touch what it shares with its parent."""
    home = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != home:
            os._exit(70)


def watch_sql(connection: Connection, _cursor: object, statement: str, *_rest: object) -> None:
    """Refuse SQL that would end the transaction behind our back: what came before would stay, whatever follows.

    SQL that changes the session leaves the mark `STAINED` in the connection's `info`, SQL that changes what kind of
    transaction it is `UNCHAINED`. Statements in a row are looked at where they begin; what a function does is not seen.
    """
    if _ENDS_TRANSACTION.match(statement):
        _refuse()
    if _STAINS_SESSION.search(statement):
        connection.info[STAINED] = True
    if _CHANGES_SETTING.search(statement):
        connection.info[MOVED] = True
    if _CHANGES_TRANSACTION.search(statement):
        connection.info[UNCHAINED] = True


def _refuse(*_: object) -> NoReturn:
    raise RuntimeError("the transaction is hookonce's: return to commit it, raise to roll it back")
