"""What a transaction is given to a handler with, and must come back without, whoever's connection it is on."""

from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from hookonce.jobs.handlers import ISOLATION_LEVELS

_ISOLATION = {level: f"SET TRANSACTION ISOLATION LEVEL {level}".encode() for level in ISOLATION_LEVELS}


def set_isolation(level: str) -> bytes:
    """Return the statement that gives a transaction its level, one of `ISOLATION_LEVELS`."""
    return _ISOLATION[level]


def require_at_rest(connection: psycopg.Connection[Any]) -> None:
    """Raise `RuntimeError` where a handler that has returned left its transaction aborted, or a statement under way."""
    status = connection.info.transaction_status
    if status is TransactionStatus.INERROR:
        raise RuntimeError("the handler returned with its transaction aborted; let errors out")
    if status is TransactionStatus.ACTIVE:
        raise RuntimeError(
            "the handler returned with a statement under way; close its cursor, copy or pipeline"
        )
