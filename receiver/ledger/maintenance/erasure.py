"""Erases what is known of a person: of events that have ended, what came and what was kept of their handling.

The rows of `events` and `runs` stay: a late copy is a duplicate still, and what was counted stays counted. A dead run
is discarded, since there is nothing left that it could be run with.

Events that hold a text are looked for in all that is kept of them, the newest first, some at a time. Each step is
committed by itself and begins below the one before; an erasure that was killed is begun anew, and finds what is left.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import NamedTuple

import psycopg
from psycopg.rows import dict_row
from pydantic import Field

from hookonce.providers.kit.reading.content_coding import text_and_headers
from hookonce.receiver import encryption
from hookonce.receiver.encryption import OFF, AssociatedData, CannotDecrypt, Keyring
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.access.audit_log import Note
from hookonce.receiver.ledger.decryption import unpack
from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.id_ranges import extent
from hookonce.receiver.ledger.queries.needles import Needle
from hookonce.receiver.ledger.results import opened_lines
from hookonce.receiver.ledger.rows import Identifier, ResponseModel
from hookonce.receiver.ledger.states import RunStatus

ERASE_BATCH = 200
"""Events erased in one transaction."""
_LOOKED_AT = 1000
"""Events looked into at a time."""
_IDS = 50_000
"""Ids passed at a time where few of them match the filter."""

# First locked and then looked at: a replay may come between.
_PRESENT = "SELECT id FROM hookonce.events WHERE id = ANY(%s) ORDER BY id"
_LOCK = f"{_PRESENT} FOR UPDATE"
_OPEN = "SELECT DISTINCT event FROM hookonce.queue WHERE event = ANY(%s) ORDER BY event"
_LOGS = (
    "SELECT id, event, handler, cycle, attempt, lines, key_id FROM hookonce.run_logs WHERE event = ANY(%s)"
)
# The first event of a batch has the lines, in the last of its rows before those of the others.
_ERASE_LINES_OF_BATCHES = """
DELETE FROM hookonce.run_logs USING unnest(%s::bigint[], %s::bigint[]) AS t (first, other)
WHERE id = (SELECT l.id FROM hookonce.run_logs l
            WHERE l.event = t.first AND l.id < t.other
                  AND l.handler = (SELECT o.handler FROM hookonce.run_logs o WHERE o.id = t.other)
            ORDER BY l.id DESC LIMIT 1)
"""
OF_HANDLER = "event = ANY(%(events)s) AND (%(handler)s::text IS NULL OR handler = %(handler)s)"
"""Keeps rows of these events, and of one handler if it is given."""
DISCARD = f"""
WITH buried AS (
    UPDATE hookonce.runs SET status = '{RunStatus.DISCARDED}', issue = NULL
    WHERE {OF_HANDLER} AND status = '{RunStatus.DEAD}' AND is_last RETURNING event, handler
)
SELECT event, handler FROM buried ORDER BY event, handler
"""  # noqa: S608  constants
"""Makes dead runs of events discarded ones, which are counted and listed as such from then on."""
_ERASE = (
    "UPDATE hookonce.events SET erased_at = coalesce(erased_at, now()), account = NULL WHERE id = ANY(%s)",
    "DELETE FROM hookonce.bodies WHERE event = ANY(%s)",
    "DELETE FROM hookonce.conflicts WHERE event = ANY(%s)",
    "DELETE FROM hookonce.failures WHERE event = ANY(%s)",
    "DELETE FROM hookonce.run_logs WHERE event = ANY(%s)",
    "UPDATE hookonce.runs SET result = NULL, sealed_result = NULL, key_id = NULL WHERE event = ANY(%s)",
    # One whose row is locked is about to be that of a newer event.
    """DELETE FROM hookonce.entities WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM hookonce.entities WHERE event = ANY(%s) FOR UPDATE SKIP LOCKED))""",
    "DELETE FROM hookonce.arrivals WHERE event = ANY(%s)",
    "DELETE FROM hookonce.waits WHERE event = ANY(%s)",
    "UPDATE hookonce.steps SET result = NULL, note = NULL, key_id = NULL WHERE event = ANY(%s)",
)

# An event that was erased holds nothing but what came under its id since.
_UNERASED = """
SELECT id FROM hookonce.events e
WHERE id = ANY(%s) AND (erased_at IS NULL OR EXISTS (SELECT FROM hookonce.conflicts c WHERE c.event = e.id))
ORDER BY id DESC
"""


class _Kept(NamedTuple):
    """A kind of what is kept: what binds it where it is sealed, and the SELECT of what may hold a text."""

    bond: Callable[..., AssociatedData]
    query: bytes


def _kept(bond: Callable[..., AssociatedData], columns: str, rows: str) -> _Kept:
    """Names of columns: a number, what is never sealed, what may be, headers of a body, and the parts of the bond."""
    number, said, sealed, headers, parts = columns.split(", ", 4)
    query = f"""
SELECT * FROM (SELECT {number} AS number, {said} AS said, {sealed} AS sealed, {headers}::json AS headers, key_id,
                      {parts} FROM hookonce.{rows}) AS kept
WHERE key_id IS NOT NULL OR headers ->> 'content-encoding' IS NOT NULL OR %(spellings)s::bytea[] = '{{}}'
      OR EXISTS (SELECT FROM unnest(%(spellings)s::bytea[]) AS s
                 WHERE position(s IN sealed) > 0 OR position(s IN convert_to(said, 'UTF8')) > 0)
"""  # noqa: S608  constants
    return _Kept(bond, query.encode())


_THESE = "WHERE event = ANY(%(ids)s)"
_RUN = "event, handler, cycle, attempt"
_BODY = "event, url || ' ' || headers, body, headers, source, event_id, fingerprint"
_OTHER_BODY = "event, headers::text, body, headers, source, event_id, c.fingerprint"
_OF_EVENTS = (
    _kept(
        encryption.body_context,
        _BODY,
        f"bodies b JOIN hookonce.events e USING (received_at) {_THESE} AND id = event",
    ),
    _kept(
        encryption.body_context, _OTHER_BODY, f"conflicts c JOIN hookonce.events e ON e.id = event {_THESE}"
    ),
    _kept(encryption.traceback_context, f"event, error, traceback, NULL, {_RUN}", f"failures {_THESE}"),
    _kept(encryption.log_context, f"event, NULL, lines, NULL, {_RUN}", f"run_logs {_THESE}"),
    _kept(
        encryption.result_context,
        "event, result::text, sealed_result, NULL, event, handler",
        f"runs {_THESE}",
    ),
    _kept(encryption.step_context, "event, note, result, NULL, event, handler, name", f"steps {_THESE}"),
)
_SPAN = """WHERE source = coalesce(%(source)s::text, source) AND {0} >= coalesce(%(since)s::timestamptz, '-infinity')
AND {0} < coalesce(%(until)s::timestamptz, 'infinity')"""
_REJECTED = "id, headers || ' ' || detail, body_prefix, headers, source, reason, rejected_at"
_QUARANTINED = "id, NULL, delivery, NULL, source, reason, arrived_at"
_OF_REFUSED = {
    "rejected": _kept(encryption.rejected_context, _REJECTED, f"rejected {_SPAN.format('rejected_at')}"),
    "quarantine": _kept(
        encryption.quarantine_context, _QUARANTINED, f"quarantine {_SPAN.format('arrived_at')}"
    ),
}


class Erasure(ResponseModel):
    """The events that were erased, or would be, and those that were left alone."""

    erased: list[Identifier] = Field(default_factory=list)
    open: list[Identifier] = Field(
        default_factory=list, description="yet to be handled, and left alone: ask again once they have ended"
    )
    refused: int = Field(
        default=0, description="rejected deliveries, in quarantine or not, that were erased with them"
    )
    closed: int = Field(default=0, description="bodies that can't be decrypted here, and were not searched")
    next: Identifier | None = Field(
        default=None, description="by a filter: the id below which the next step begins; null at the end"
    )


def erase(
    connection: psycopg.Connection, events: Iterable[int], who: str | None, keyring: Keyring = OFF
) -> Erasure:
    """Erase what the ledger knows of these events, in one transaction; each is noted in the audit.

    Without `who` nothing is erased, and what would be is told.

    What the handler of a batch has written may be about any of its events, so it goes with the first that is erased;
    `keyring` opens what says where those lines are.
    """
    with connection.transaction():
        present = [number for (number,) in connection.execute(_LOCK if who else _PRESENT, [[*events]])]
        still_open = [number for (number,) in connection.execute(_OPEN, [present])]
        ended = [number for number in present if number not in still_open]
        if who is None:
            return Erasure(erased=ended, open=still_open)
        _erase_lines_of_batches(connection, ended, keyring)
        for statement in _ERASE:
            connection.execute(statement.encode(), [ended])
        connection.execute(DISCARD.encode(), {"events": ended, "handler": None})
        audit_log.note_all(connection, who, [Note("erase", f"event {number}", {}) for number in ended])
    return Erasure(erased=ended, open=still_open)


def step(  # noqa: PLR0913  the last three by keyword
    connection: psycopg.Connection,
    keyring: Keyring,
    wanted: Filter,
    needle: Needle | None,
    *,
    who: str | None,
    before: int | None,
    budget: timedelta,
) -> Erasure:
    """Erase the newest matching events with ids below `before`, `ERASE_BATCH` at most, as far as `budget` reaches.

    Without `who` nothing is erased, and what would be is told. Each leaves a receipt in the audit, of counts and of
    what kinds the filter is, but of no value.
    """
    low, top = extent(connection, wanted, before)
    until = time.monotonic() + budget.total_seconds()
    done = Erasure()
    while top > low and not (done.erased or done.open) and time.monotonic() < until:
        page = wanted.parameters | {"low": max(low, top - _IDS), "top": top, "limit": _LOOKED_AT}
        ids = [row[0] for row in connection.execute(event_filter.ids(wanted).encode(), page, prepare=False)]
        top = ids[-1] if len(ids) == _LOOKED_AT else max(low, top - _IDS)
        found = [row[0] for row in connection.execute(_UNERASED, [ids])]
        if needle is not None:
            asked = {"ids": found}
            holders = {
                each
                for kept in _OF_EVENTS
                for each in _holders(connection, keyring, needle, kept, asked, done)
            }
            found = [each for each in found if each in holders]
        if len(found) > ERASE_BATCH:
            found, top = found[:ERASE_BATCH], found[ERASE_BATCH - 1]
        with connection.transaction():
            these = erase(connection, found, who, keyring)
            done.erased, done.open = these.erased, these.open
            _note(connection, who, wanted, needle, done)
    done.next = top if top > low else None
    return done


def let_go(
    connection: psycopg.Connection, keyring: Keyring, wanted: Filter, needle: Needle, who: str | None
) -> Erasure:
    """Erase the rejected deliveries that hold a text, those in quarantine too; count them without `who`.

    A filter that is about events finds none.
    """
    done = Erasure()
    if wanted == Filter(source=wanted.source, since=wanted.since, until=wanted.until):
        with connection.transaction(force_rollback=who is None):
            for table, kept in _OF_REFUSED.items():
                held = [*_holders(connection, keyring, needle, kept, wanted.parameters, done)]
                connection.execute(f"DELETE FROM hookonce.{table} WHERE id = ANY(%s)".encode(), [held])  # noqa: S608
                done.refused += len(held)
            _note(connection, who, wanted, needle, done)
    return done


def _note(
    connection: psycopg.Connection, who: str | None, wanted: Filter, needle: Needle | None, done: Erasure
) -> None:
    if who is not None and (done.erased or done.refused):
        kinds = [name for name, value in asdict(wanted).items() if value is not None]
        detail = {
            "by": kinds + ["content"] * (needle is not None),
            "erased": len(done.erased),
            "refused": done.refused,
        }
        audit_log.note(connection, who, "erase", "by a filter", detail)


def _holders(  # noqa: PLR0913, PLR0917  one kind of what is kept
    connection: psycopg.Connection,
    keyring: Keyring,
    needle: Needle,
    kept: _Kept,
    asked: Mapping[str, object],
    done: Erasure,
) -> Iterator[int]:
    """Yield the numbers of what holds it; read row by row, so that large ones do not lie in memory together."""
    with connection.cursor() as cursor:
        for number, said, sealed, headers, key, *parts in cursor.stream(
            kept.query, {**asked, "spellings": needle.spellings}
        ):
            try:
                text = keyring.open(sealed or b"", key, kept.bond(*parts))
            except CannotDecrypt:
                done.closed += 1
                text = b""
            if text and kept.bond is encryption.quarantine_context:
                held = unpack(text)
                is_in = _is_in(needle, f"{held.url} {held.headers}", held.body, held.headers)
            else:
                is_in = _is_in(needle, said, text, headers)
            if is_in:
                yield number


def _is_in(needle: Needle, said: str | None, text: bytes, headers: Mapping[str, str] | None) -> bool:
    """Whether it is there: a place and its value in a body alone, which comes with headers, a text anywhere."""
    body = text if headers is None else text_and_headers(text, headers)[0]
    if needle.steps is not None:
        return headers is not None and needle.is_in(body)
    return needle.is_in(body) or needle.is_in((said or "").encode())


def _erase_lines_of_batches(connection: psycopg.Connection, events: Sequence[int], keyring: Keyring) -> None:
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(_LOGS, [events]).fetchall()
    firsts = {row["id"]: opened_lines(keyring, row["event"], row).get("batch") for row in rows}
    elsewhere = {row: first for row, first in firsts.items() if first is not None}
    connection.execute(_ERASE_LINES_OF_BATCHES, [list(elsewhere.values()), list(elsewhere)])
