"""Finds one event by whatever an operator has in hand: a ledger id, `source:event_id`, or how an id begins."""

import re

import psycopg

from hookonce.receiver.ledger.queries.event_filter import SOURCES, Filter, like
from hookonce.receiver.ledger.queries.events import events
from hookonce.receiver.ledger.states import RunStatus

_LONGEST_NUMBER = 18
"""Digits that fit a bigint, whatever they are."""
NEVER_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters that no text of the ledger holds, nor may it be asked for one."""
MAX_SHOWN = 5
"""Candidates that an error names."""

_BY_NUMBER = "SELECT id FROM hookonce.events WHERE id = %s"
_BY_KEY = "SELECT id FROM hookonce.events WHERE source = %s AND event_id = %s"
_BY_EVENT_ID = (
    f"SELECT id FROM hookonce.events WHERE event_id = %s AND source = ANY(ARRAY({SOURCES})) LIMIT 2"  # noqa: S608
)


_UNREADABLE = f"""
SELECT r.event FROM hookonce.runs r JOIN hookonce.failures f ON f.event = r.event AND f.handler = ''
WHERE r.status = '{RunStatus.DEAD}' AND r.is_last AND r.handler = '' AND f.error LIKE '%%; its id reads ' || %s
ORDER BY r.event DESC LIMIT 2
"""  # noqa: S608  a constant
"""Unreadable events have an id of ours; the end of the reason names the sender's."""


class Ambiguous(Exception):  # noqa: N818  a state of the world
    """Several events are of that name; the text lists the newest of them."""


def find(connection: psycopg.Connection, reference: str) -> int | None:
    """Return the ledger id of an event; None where there is none.

    A number is a ledger id and nothing else. Otherwise `source:event_id`, or a sender's id alone, wins over
    ids that only begin so. Raises: `Ambiguous` if several do.
    """
    if reference.isascii() and reference.isdecimal():
        return _only(connection, _BY_NUMBER, int(reference)) if len(reference) <= _LONGEST_NUMBER else None
    if not reference or NEVER_TEXT.search(reference):
        return None
    source, _, event_id = reference.partition(":")
    exact = _only(connection, _BY_KEY, source, event_id) or _only(connection, _BY_EVENT_ID, reference)
    if exact is not None:
        return exact
    if event_id:
        found = _beginning(connection, reference, Filter(source=source, event_id=event_id))
        if found is not None:
            return found
    found = _beginning(connection, reference, Filter(event_id=reference))
    return found or _only(connection, _UNREADABLE, like(reference))


def _only(connection: psycopg.Connection, query: str, *values: object) -> int | None:
    rows = connection.execute(query.encode(), values).fetchall()
    return int(rows[0][0]) if len(rows) == 1 else None


def _beginning(connection: psycopg.Connection, reference: str, wanted: Filter) -> int | None:
    rows = list(events(connection, wanted, MAX_SHOWN + 1))
    if len(rows) > 1:
        names = ", ".join(f"{row.source}:{row.event_id} ({row.id})" for row in rows[:MAX_SHOWN])
        more = ", …" if len(rows) > MAX_SHOWN else ""
        raise Ambiguous(f"several events begin with {reference!r}: {names}{more}; name one of them in full")
    return rows[0].id if rows else None
