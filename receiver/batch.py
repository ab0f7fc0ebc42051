"""One batch of deliveries through window, ledger and settle: *answer 2xx only when the ledger holds the event*.

The window makes that answer fast; it never makes it true. A hit in the window is believed only after the
connection that commits has just said which database it is (`FRESH`); whatever else the window says, or
does not say, goes to the ledger. After COMMIT one round trip to Redis remembers the events and asks
whether the bell needs ringing; if that fails, the sweep makes up for it.
"""

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import psycopg
import redis

from receiver import database
from receiver.database import LedgerUnavailable
from receiver.failpoints import reach
from receiver.handoff import Bell
from receiver.ledger.store import NewEvent, Stored, Verdict, store
from receiver.window import Entry, Window, WindowUnavailable

log = logging.getLogger(__name__)

FRESH = timedelta(milliseconds=100)
"""How long the committing connection's word on where it is stays good enough to believe a hit."""
REREAD = timedelta(seconds=2)
IMPATIENT = timedelta(milliseconds=50)

_Copy = tuple[str, str, bytes]
_KEEPS_CONNECTION = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.DataError,
    psycopg.IntegrityError,
)


@dataclass(frozen=True, slots=True)
class Parcel:
    """The events of one delivery, answered together; `ttl` is the source's window."""

    events: Sequence[NewEvent]
    ttl: timedelta


class Lane:
    """Commits batches on a PostgreSQL connection of its own; not for two threads at once."""

    def __init__(self, database_url: str, window: Window, bell: Bell) -> None:
        self._url = database_url
        self._window = window
        self._bell = bell
        self._connection: psycopg.Connection | None = None
        self._place: str | None = None
        self._placed_at = 0.0

    def __call__(self, parcels: Sequence[Parcel]) -> list[list[Stored] | Exception]:
        """Store what is new of every parcel; answer each with its events' rows in order, or with its error."""
        entries = {_copy(event): _entry(event, parcel.ttl) for parcel in parcels for event in parcel.events}
        found = self._ask_window(entries)
        stored, errors = self._store(parcels, found)
        if stored:
            reach("ledger.committed")
        self._settle(stored, entries)
        found |= stored
        answered: set[_Copy] = set()
        return [
            _answer(parcel, found, answered) if all(_copy(e) in found for e in parcel.events) else errors[n]
            for n, parcel in enumerate(parcels)
        ]

    def _ask_window(self, entries: dict[_Copy, Entry]) -> dict[_Copy, Stored]:
        """Find the events that the window knows under the very database we commit to."""
        try:
            place = self._locate(REREAD)
            if place is None:
                return {}
            hits = self._window.claim(place, list(entries.values()))
            reach("window.claimed")
            if not any(hits) or self._locate(FRESH) != place:
                return {}
        except (WindowUnavailable, LedgerUnavailable, psycopg.Error):
            return {}
        return {
            copy: Stored(0, Verdict.DUPLICATE, copy[2])
            for copy, hit in zip(entries, hits, strict=True)
            if hit
        }

    def _store(
        self, parcels: Sequence[Parcel], found: dict[_Copy, Stored]
    ) -> tuple[dict[_Copy, Stored], dict[int, Exception]]:
        """Store what is not found: all at once, or parcel by parcel if that fails for a reason of one of them."""
        missing = {
            _copy(event): event for parcel in parcels for event in parcel.events if _copy(event) not in found
        }
        if not missing:
            return {}, {}
        try:
            return self._store_rounds(missing.values()), {}
        except LedgerUnavailable as error:
            return {}, dict.fromkeys(range(len(parcels)), error)
        except psycopg.Error:
            return self._store_apart(parcels, missing)

    def _store_rounds(self, events: Iterable[NewEvent]) -> dict[_Copy, Stored]:
        """Store events, those that must see each other's rows in later statements; reconnect once if need be."""
        stored: dict[_Copy, Stored] = {}
        for batch in _rounds(events):
            try:
                rows = store(self._connected(), batch)
            except _KEEPS_CONNECTION:
                raise
            except psycopg.Error:
                self.close()
                rows = self._store_anew(batch)
            stored |= {_copy(event): rows[event.key] for event in batch}
        return stored

    def _store_anew(self, batch: Sequence[NewEvent]) -> dict[tuple[str, str], Stored]:
        try:
            return store(self._connected(), batch)
        except _KEEPS_CONNECTION:
            raise
        except psycopg.Error as error:
            self.close()
            raise LedgerUnavailable(f"PostgreSQL failed twice: {type(error).__name__}") from None

    def _store_apart(
        self, parcels: Sequence[Parcel], missing: dict[_Copy, NewEvent]
    ) -> tuple[dict[_Copy, Stored], dict[int, Exception]]:
        """Store parcel by parcel; one that has to wait for somebody's lock goes last and alone pays for it."""
        stored: dict[_Copy, Stored] = {}
        errors: dict[int, Exception] = {}
        turn = list(range(len(parcels)))
        for patience in (IMPATIENT, database.LOCK_TIMEOUT):
            try:
                database.set_lock_timeout(self._connected(), patience)
                failed = {n: self._store_parcel(parcels[n], missing, stored) for n in turn}
            except (psycopg.Error, LedgerUnavailable) as error:
                log.warning("PostgreSQL went away: %s", type(error).__name__)
                return stored, {n: LedgerUnavailable("PostgreSQL went away") for n in turn}
            errors = {n: error for n, error in failed.items() if error}
            turn = list(errors)
        return stored, errors

    def _store_parcel(
        self, parcel: Parcel, missing: dict[_Copy, NewEvent], stored: dict[_Copy, Stored]
    ) -> Exception | None:
        """Add one parcel's rows to `stored`, or say why it can't be done."""
        todo = {_copy(e): e for e in parcel.events if _copy(e) in missing and _copy(e) not in stored}
        try:
            stored |= self._store_rounds(todo.values())
        except _KEEPS_CONNECTION as error:
            log.warning("an event could not be stored: %s", type(error).__name__)
            return LedgerUnavailable(f"PostgreSQL refused: {type(error).__name__}")
        return None

    def _settle(self, stored: dict[_Copy, Stored], entries: dict[_Copy, Entry]) -> None:
        """Remember what is stored and ring if nobody is ringing; best effort, the sweep makes up for it."""
        if not stored:
            return
        due = [row.id for row in stored.values() if row.verdict is Verdict.ACCEPTED]
        remembered = [_remember(entries[copy], row) for copy, row in stored.items()]
        try:
            rings = self._window.settle(self._place, remembered, self._bell.queue)
            reach("window.settled")
            if due and not rings:
                self._bell.ring(due)
                reach("bell.rung")
        except (WindowUnavailable, redis.RedisError, OSError) as error:
            log.warning("events are stored but the bell did not ring: %s", type(error).__name__)

    def _locate(self, age: timedelta) -> str | None:
        """Tell where the connection commits, on its own word no older than `age`."""
        connection = self._connected()
        if time.monotonic() - self._placed_at > age.total_seconds():
            try:
                self._place = database.where_am_i(connection)
            except psycopg.Error:
                self.close()
                raise
            self._placed_at = time.monotonic()
        return self._place

    def _connected(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = database.connect(self._url)
            self._place = database.where_am_i(self._connection)
            self._placed_at = time.monotonic()
        return self._connection

    def close(self) -> None:
        """Close the connection; the next batch opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._place = None


def _rounds(events: Iterable[NewEvent]) -> list[list[NewEvent]]:
    """Split so that no two events of a round share a key, or (with unsigned ids) a body."""
    rounds: list[tuple[list[NewEvent], set[object]]] = []
    for event in events:
        marks: set[object] = {event.key}
        if not event.id_is_signed:
            marks.add((event.source, event.fingerprint))
        for batch, taken in rounds:
            if not marks & taken:
                batch.append(event)
                taken.update(marks)
                break
        else:
            rounds.append(([event], marks))
    return [batch for batch, _ in rounds]


def _answer(parcel: Parcel, found: dict[_Copy, Stored], answered: set[_Copy]) -> list[Stored]:
    """Answer a parcel; a copy of an event that an earlier one of the batch brought is a duplicate."""
    rows = []
    for event in parcel.events:
        copy = _copy(event)
        row = found[copy]
        if copy in answered and row.verdict is not Verdict.CONFLICT:
            row = Stored(row.id, Verdict.DUPLICATE, row.fingerprint)
        answered.add(copy)
        rows.append(row)
    return rows


def _copy(event: NewEvent) -> _Copy:
    return (event.source, event.event_id, event.fingerprint)


def _entry(event: NewEvent, ttl: timedelta) -> Entry:
    return Entry(event.source, event.event_id, event.fingerprint, ttl)


def _remember(entry: Entry, row: Stored) -> Entry:
    return Entry(entry.source, entry.event_id, row.fingerprint, entry.ttl)
