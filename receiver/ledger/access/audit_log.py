"""The audit log: changes by people, written with each, read newest first."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, NamedTuple, TypedDict, Unpack

import psycopg

from hookonce.receiver.ledger.rows import Identifier, Ours, all_as
from hookonce.receiver.ledger.withheld import Content, ContentRow, without_error


def _without_error(detail: Any) -> object:  # noqa: ANN401  JSON
    wanted = detail.get("filter") if isinstance(detail, dict) else None
    return detail | {"filter": without_error(wanted)} if isinstance(wanted, dict) else detail


class Change(ContentRow):
    """One thing somebody did, and to what."""

    id: Identifier
    at: datetime
    who: Ours
    action: Ours
    subject: str
    detail: Annotated[Any, Content(_without_error)]


class Note(NamedTuple):
    """A change that is not written down yet; `detail` is made into JSON."""

    action: str
    subject: str
    detail: Mapping[str, Any]


_NOTE = """
INSERT INTO hookonce.audit (who, action, subject, detail)
SELECT %s, action, subject, detail::json FROM unnest(%s::text[], %s::text[], %s::text[]) AS t (action, subject, detail)
RETURNING id
"""
_LATEST = """
SELECT id, at, who, action, subject, detail FROM hookonce.audit
WHERE (%(before)s::bigint IS NULL OR id < %(before)s) AND (%(who)s::text IS NULL OR who = %(who)s)
      AND (%(action)s::text IS NULL OR action = %(action)s) AND (%(subject)s::text IS NULL OR subject = %(subject)s)
      AND (%(since)s::timestamptz IS NULL OR at >= %(since)s) AND (%(until)s::timestamptz IS NULL OR at < %(until)s)
ORDER BY id DESC LIMIT %(limit)s
"""


def note(
    connection: psycopg.Connection,
    who: str,
    action: str,
    subject: str,
    detail: Mapping[str, Any] | None = None,
) -> int:
    """Write down that somebody did something; return the number of the note."""
    return note_all(connection, who, [Note(action, subject, detail or {})])[0]


def note_all(connection: psycopg.Connection, who: str, notes: Iterable[Note]) -> list[int]:
    """Write down, in this order and one statement, what somebody did to many things; return the notes' numbers."""
    rows = [(action, subject, json.dumps(dict(detail))) for action, subject, detail in notes]
    written = connection.execute(_NOTE, [who, *([row[column] for row in rows] for column in range(3))])
    return [number for (number,) in written.fetchall()]


class Wanted(TypedDict, total=False):
    """Which changes: of somebody, of a kind, to something, or of a time only; what is None or left out takes all."""

    who: str | None
    action: str | None
    subject: str | None
    since: datetime | None
    until: datetime | None


def latest(
    connection: psycopg.Connection, limit: int, before: int | None = None, **wanted: Unpack[Wanted]
) -> list[Change]:
    """Return the newest changes, those with ids below `before`."""
    values = {**dict.fromkeys(Wanted.__annotations__), **wanted, "limit": limit, "before": before}
    return all_as(Change, connection, _LATEST, values)
