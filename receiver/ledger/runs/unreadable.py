"""Rows that the ledger holds and Python can't: isolated, so that one of them does not fail a whole claim.

A moment of the year 1 is one, where the session's time zone is west of UTC: it lies before Python's first year there.
The rows are at the client already when that is found, so the transaction goes on.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import psycopg
from psycopg.rows import tuple_row

from hookonce.receiver.ledger.runs.claimed import ClaimedEvent

Row = TypeVar("Row")
_ERRORS = (psycopg.DataError, ValueError, RecursionError)
_ID = ClaimedEvent._fields.index("id")
_LABELS = "SELECT id, source, provider, type FROM hookonce.events WHERE id = ANY(%s) ORDER BY id"
_FROM = """
FROM hookonce.events d LEFT JOIN hookonce.bodies b ON b.event = d.id AND b.received_at = d.received_at
WHERE d.id = %(id)s
"""


def sort_out(cursor: psycopg.Cursor[Row]) -> tuple[list[Row], list[int]]:
    """Return the events that a cursor has fetched, in binary, and the ids of those that can't be read."""
    try:
        return cursor.fetchall(), []
    except _ERRORS:
        if cursor.pgresult is None or not cursor.pgresult.ntuples:  # an error of the server's
            raise
    readable, odd = [], []
    for number in range(cursor.pgresult.ntuples):
        cursor.scroll(number, mode="absolute")
        try:
            readable.extend(cursor.fetchmany(1))
        except _ERRORS:
            odd.append(int.from_bytes(cursor.pgresult.get_value(number, _ID) or b""))
    return readable, odd


def labels(connection: psycopg.Connection, ids: Sequence[int]) -> list[ClaimedEvent]:
    """Return events with what says who takes them, and nothing else."""
    rows = connection.execute(_LABELS, [list(ids)]).fetchall()
    return [_labelled(*row) for row in rows]


def _labelled(number: int, source: str, provider: str, type: str) -> ClaimedEvent:  # noqa: A002  the field's word
    return ClaimedEvent(
        id=number,
        source=source,
        provider=provider,
        event_id="",
        type=type,
        account=None,
        received_at=datetime.min.replace(tzinfo=UTC),
        occurred_at=None,
        repeat_of=None,
        status="",
        due_at=datetime.min.replace(tzinfo=UTC),
        fingerprint=b"",
        keep_body=True,
        is_test=False,
        url=None,
        headers=None,
        body=None,
        is_element=False,
        key_id=None,
        traceparent=None,
    )


def reason(connection: psycopg.Connection, event: int, columns: Mapping[str, str], heavy: int) -> str:
    """Return which columns of an event can't be read, and why."""
    found = []
    for name, column in columns.items():
        cursor = connection.cursor(row_factory=tuple_row)
        try:
            cursor.execute(f"SELECT {column} {_FROM}", {"id": event, "heavy": heavy}, binary=True).fetchall()
        except _ERRORS as error:
            found.append(f"{name} ({error})")
    return (
        f"this event can't be read from the ledger: {', '.join(found)}; correct its row, or the time zone of the "
        "session (`hookonce doctor` shows it), and replay it"
    )
