"""Takes events out of a ledger and into another: as they are kept there, opened, and each exactly once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psycopg
from psycopg.rows import dict_row

from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.decryption import Body, StoredBody, decrypt_body
from hookonce.receiver.ledger.queries import event_filter
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.id_ranges import extent
from hookonce.receiver.ledger.states import WHY_UNREADABLE, Waits
from hookonce.receiver.ledger.store import NewEvent, Verdict, store

TRANSFER_PAGE_SIZE = 100
TRANSFER_WINDOW = 50_000
"""Ids looked through by one statement."""

_COLUMNS = """id, source, provider, event_id, type, account, fingerprint, id_is_signed, status, received_at,
occurred_at, deliveries, is_test"""

_WITH_BODIES = f"""
SELECT e.*, b.url, b.headers, b.body, b.key_id, coalesce(b.is_element, false) AS is_element,
       b.event IS NOT NULL AS kept,
       {WHY_UNREADABLE} AS unreadable
FROM ({{events}}) AS e LEFT JOIN hookonce.bodies b ON b.event = e.id AND b.received_at = e.received_at ORDER BY e.id
"""  # noqa: S608  constants

# What nobody can read is dead and stays so: there is nothing of it in the queue, and nothing in it to be released.
_HOLD = f"UPDATE hookonce.queue SET waits = '{Waits.HELD}' WHERE event = ANY(%s)"  # noqa: S608  a constant


@dataclass(frozen=True, slots=True)
class Kept:
    """An event as a ledger keeps it; `body` is None once retention has dropped it."""

    row: dict[str, object]
    body: Body | None
    is_element: bool
    fingerprint: bytes
    id_is_signed: bool


@dataclass(slots=True)
class Taken:
    """How many events were new, known already, and known with another body."""

    new: int = 0
    known: int = 0
    conflicts: int = 0


def kept(connection: psycopg.Connection, keyring: Keyring, wanted: Filter) -> Iterator[Kept]:
    """Yield all matching events, oldest first, a page at a time, so memory stays small."""
    low, top = extent(connection, wanted)
    query = _WITH_BODIES.format(events=event_filter.rows(_COLUMNS, wanted, "ASC")).encode()
    with connection.cursor(row_factory=dict_row) as cursor:
        while low < top:
            to = min(low + TRANSFER_WINDOW, top)
            page = wanted.parameters | {"low": low, "top": to, "limit": TRANSFER_PAGE_SIZE}
            rows = cursor.execute(query, page, prepare=False).fetchall()
            yield from (_kept(keyring, row) for row in rows)
            low = rows[-1]["id"] + 1 if len(rows) == TRANSFER_PAGE_SIZE else to


def take(  # noqa: PLR0913  the last by keyword
    connection: psycopg.Connection,
    batch: Sequence[NewEvent],
    who: str,
    taken: Taken,
    *,
    run: bool,
    in_order: bool = False,
) -> None:
    """Take events in that are not known, due at once or (not `run`) held; adds to `taken`. Committed, audited.

    With `in_order` they have their ledger ids, and are due, in the order of the batch, and may name one id twice.

    An element that can't be read is dead in any case. What is known stays as it is; another body under a known id is
    kept beside it, as of a delivery.
    """
    with connection.transaction():
        one_by_one = [[event] for event in batch] if in_order else [batch]
        answers = [answer for each in one_by_one for answer in store(connection, each).values()]
        new = [answer.id for answer in answers if answer.verdict is Verdict.ACCEPTED]
        if not run:
            connection.execute(_HOLD, [new])
        if new:
            detail = {"events": len(new), "run": run}
            audit_log.note(connection, who, "import", f"events {min(new)} to {max(new)}", detail)
    verdicts = [answer.verdict for answer in answers]
    taken.new += len(new)
    taken.known += verdicts.count(Verdict.DUPLICATE)
    taken.conflicts += verdicts.count(Verdict.CONFLICT)


def _kept(keyring: Keyring, row: dict[str, object]) -> Kept:
    columns = {name: row.pop(name) for name in ("url", "headers", "body", "key_id")}
    fingerprint = bytes(row.pop("fingerprint"))  # type: ignore[call-overload]
    names = {"source": row["source"], "event_id": row["event_id"], "fingerprint": fingerprint}
    stored = StoredBody(**columns, **names) if row.pop("kept") else None  # type: ignore[arg-type]
    return Kept(
        row=row,
        body=decrypt_body(keyring, stored),
        is_element=bool(row.pop("is_element")),
        fingerprint=fingerprint,
        id_is_signed=bool(row.pop("id_is_signed")),
    )
