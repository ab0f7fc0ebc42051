"""Goes through what waits for its time, a page at a time, and changes what is to come at another time.

A page is read by due time, so that a queue of millions is read once; its end is where the next one begins. What of it
is to be changed is locked, in the order of its rows, and left alone if somebody has changed it meanwhile.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import psycopg

from hookonce.receiver.ledger.states import Waits

PAGE = 2000
BEGINNING = "-infinity"
"""The place before the first page."""
NOW = "now"
"""The place before what is not due yet."""

# Rows that are due at the same time are of one page: the next begins after them.
_AFTER = f"waits IS NULL AND due_at > %(after)s ORDER BY due_at FETCH FIRST {PAGE} ROWS WITH TIES"
_SUSPECTS = f"waits = '{Waits.SUSPECT}'"


def _change(which: str, condition: str, changes: str, *others: str) -> str:
    return f"""
WITH page AS MATERIALIZED (
    SELECT * FROM hookonce.queue WHERE {which}
), found AS MATERIALIZED (
    SELECT event, n, due_at, waits FROM page q WHERE token IS NULL AND {condition}
), mine AS MATERIALIZED (
    SELECT q.event, q.n, q.handler, q.cycle FROM found JOIN hookonce.queue q USING (event, n)
    WHERE q.token IS NULL AND q.due_at = found.due_at AND q.waits IS NOT DISTINCT FROM found.waits
    ORDER BY q.event, q.n FOR UPDATE OF q
), {"".join(others)} changed AS (
    UPDATE hookonce.queue q SET {changes} FROM mine WHERE (q.event, q.n) = (mine.event, mine.n)
)
SELECT max(due_at), (SELECT count(*) FROM mine) FROM page
"""  # noqa: S608  conditions of ours


def change_page(condition: str, changes: str, *others: str) -> str:
    """Return a statement that changes those rows of a page that nobody is at and a condition holds for.

    `condition` and `changes` are SQL on a row `q` of the queue; `others` do besides what belongs to it, from `mine`,
    each as `name AS (…),`. The statement takes `after`, the end of the page before, and returns the end of this one,
    None if there is none, and how many rows were changed.
    """
    return _change(_AFTER, condition, changes, *others)


def change_suspects(condition: str, changes: str) -> str:
    """Return a statement that does the same with suspects, which are few: all of them are one page."""
    return _change(_SUSPECTS, condition, changes)


def change(
    connection: psycopg.Connection,
    statement: str,
    values: Mapping[str, Any],
    after: datetime | str = BEGINNING,
) -> tuple[datetime | None, int]:
    """Change one page after a place; return where it ends, None if there is nothing after, and how many were changed.

    Committed.
    """
    with connection.transaction():
        row = connection.execute(statement, {**values, "after": after}).fetchone()
    return (row[0], row[1]) if row else (None, 0)


def change_later(connection: psycopg.Connection, statement: str, values: Mapping[str, Any]) -> int:
    """Change what is not due yet, page after page; return how many rows were changed. Committed page by page."""
    place: datetime | str | None = NOW
    changed = 0
    while place is not None:
        place, count = change(connection, statement, values, place)
        changed += count
    return changed
