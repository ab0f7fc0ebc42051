"""How much waits for whom, cheap at any size: by partial indexes, and never counted beyond `MOST`."""

from dataclasses import dataclass

import psycopg
from psycopg.rows import class_row

from receiver.ledger.figures import OLDEST_DUE

MOST = 10_000
"""Where counting stops; one more says that there are more."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Events that want something, `MOST` + 1 where there are more; `oldest_due` as in `figures`."""

    due: int
    waiting: int
    dead: int
    held: int
    oldest_due: float


def _counted(condition: str) -> str:
    return f"(SELECT count(*) FROM (SELECT FROM events WHERE {condition} LIMIT {MOST + 1}) AS bounded)"  # noqa: S608  the same


_WAITING = f"""
SELECT {_counted("due_at <= now()")} AS due,
       {_counted("status = 'waiting'")} AS waiting,
       {_counted("status = 'dead'")} AS dead,
       {_counted("status = 'held'")} AS held,
       ({OLDEST_DUE}) AS oldest_due
"""


def waiting(connection: psycopg.Connection) -> Waiting:
    """Count what is due, waits, is dead or held."""
    with connection.cursor(row_factory=class_row(Waiting)) as cursor:
        return cursor.execute(_WAITING.encode()).fetchone() or Waiting(0, 0, 0, 0, 0.0)
