"""What a handler may not do with the connection it is given: end its transaction, or leave a child on it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from sqlalchemy import Connection

STAINED = "stained"
"""The key in a connection's `info` that says: a handler has changed the session."""
_STAINS_SESSION = re.compile(
    r"^\s*(set\s+(?!local\b|constraints\b|transaction\b)|reset\b|listen\b|discard\b)|set_config\s*\(|pg_advisory_lock|"
    r"\btemp(orary)?\s+(table|view|sequence)",
    re.IGNORECASE,
)
_ENDS_TRANSACTION = re.compile(
    r"\s*(commit|end|abort|begin|start\s+transaction|prepare\s+transaction|rollback(?!\s+(work\s+|transaction\s+)?to\b))\b",
    re.IGNORECASE,
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

    SQL that changes the session leaves the mark `STAINED` in the connection's `info`.
    """
    if _ENDS_TRANSACTION.match(statement):
        _refuse()
    if _STAINS_SESSION.search(statement):
        connection.info[STAINED] = True


def _refuse(*_: object) -> NoReturn:
    raise RuntimeError("the transaction is hookonce's: return to commit it, raise to roll it back")
