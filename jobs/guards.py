"""What a handler may not do with the connection it is given: end its transaction, or leave a child on it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from sqlalchemy import Connection

STAINED = "stained"
"""The key in a connection's `info` that says: a handler has changed the session."""
UNCHAINED = "unchained"
"""Says: a handler has changed its transaction in a way that a chained one would take over."""

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
    r"|.*?;\s*(commit|abort|rollback)(\s+(work|transaction))?\s*(;|$)",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES_TRANSACTION = re.compile(
    r"\bset\s+transaction\b|transaction_(isolation|read_only|deferrable)", re.IGNORECASE
)


@contextmanager
def guarded(connection: Connection) -> Iterator[None]:
    """Keep the handler from ending the transaction it is given; savepoints (`begin_nested`) work."""
    for name in ("commit", "rollback", "close"):
        setattr(connection, name, _refuse)
    try:
        yield
    finally:
        for name in ("commit", "rollback", "close"):
            delattr(connection, name)


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
    if _CHANGES_TRANSACTION.search(statement):
        connection.info[UNCHAINED] = True


def _refuse(*_: object) -> NoReturn:
    raise RuntimeError("the transaction is hookonce's: return to commit it, raise to roll it back")
