"""One batch of deliveries through window, ledger and settle: *answer 2xx only when the ledger holds the event*.

The window makes that answer fast; it never makes it true. A hit in the window, which bears a mark made with the
ledger's own key, is believed only after the connection that commits has just said which database it is and which key it
has (`PLACE_TTL`); whatever else the window says, or does not say, goes to the ledger.

After COMMIT, and after the answers, the events are remembered in the window, and a worker is notified where none is
yet: in the round trip that claims the next batch, or by `rest` if there is none. If that fails, the sweep makes up
for it.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import TypeVar

import psycopg

from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.store import NewEvent, Stored, Verdict, store_in
from hookonce.receiver.processes.waits import Waits
from hookonce.receiver.redis.client import RedisUnavailable
from hookonce.receiver.redis.dedup_window import (
    DedupWindow,
    Remembered,
    WindowEntry,
    WindowPlace,
    WindowUnavailable,
)
from hookonce.receiver.redis.work_queue import WorkQueue

log = logging.getLogger(__name__)

_Item = TypeVar("_Item")

PLACE_TTL = timedelta(milliseconds=100)
"""How long the committing connection's word on where it is stays good enough to believe a hit."""
PLACE_REREAD_INTERVAL = timedelta(seconds=2)
SHORT_LOCK_TIMEOUT = timedelta(milliseconds=50)
STORE_STATEMENT_TIMEOUT = timedelta(seconds=6)
"""Of what stores a batch: pages may have to be read from a disk that is busy. Less than a request waits."""
MAX_SCRIPT_EVENTS = 1000
"""Events that one script takes: Redis does nothing else meanwhile."""

_SMALL = 4096
"""Bytes of a body that cost as much as a small event does besides."""

_UNNOTIFIED = "events are stored but no worker was notified: %s"
_KEEPS_CONNECTION = (
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.DataError,
    psycopg.IntegrityError,
)


class _LedgerMoved(Exception):  # noqa: N818  a state of the world that starts a batch again
    """A failover between two parts of a batch: what the old primary took may be lost, so all is stored anew."""


@dataclass(slots=True)
class DeliveryEvents:
    """The events of one delivery, answered together, and as the window knows them; `ttl` is the source's window."""

    events: Sequence[NewEvent]
    ttl: timedelta
    entries: Sequence[WindowEntry] = field(init=False)
    weight: int = field(init=False)
    """How much work it is to store them, in small events."""

    def __post_init__(self) -> None:
        self.entries = [_entry(event) for event in self.events]
        self.weight = len(self.events) + sum(len(event.body) for event in self.events) // _SMALL


@dataclass(frozen=True, slots=True)
class Unsettled:
    """So many events that were stored, of which the window has not been told yet; a worker may run those `due` now."""

    events: int
    stored: Remembered
    due: Sequence[int]


class Deduplicator:
    """Commits batches on a PostgreSQL connection of its own; not two at once."""

    def __init__(
        self,
        database_url: str,
        window: DedupWindow,
        work_queue: WorkQueue,
        on_error: Callable[[str], None] = lambda _phase: None,
    ) -> None:
        """Commit to `database_url`; `on_error` is told when Redis took no notification: phase `notify`."""
        self._on_error = on_error
        self._url = database_url
        self._window = window
        self._work_queue = work_queue
        self._connection: psycopg.Connection | None = None
        self._place: WindowPlace | None = None
        self._place_read_at = 0.0
        self._ledgers = 0  # how many the connections have led to, one after the other
        self._last_ledger: WindowPlace | None = None
        self._stored_in: int | None = None  # which of them has the first part of this batch
        self._unsettled: Unsettled | None = None  # of the batch before

    async def commit(
        self, deliveries: Sequence[DeliveryEvents], waits: Waits
    ) -> list[list[Stored] | Exception]:
        """Store what is new of every delivery; answer each with its events' rows in order, or with its error."""
        ttls = {entry: delivery.ttl for delivery in deliveries for entry in delivery.entries}
        found = await self._ask_window(ttls, waits)
        stored, errors = await self._store(deliveries, found, waits)
        if stored:
            reach("ledger.committed")
            await self.rest(waits)  # what could not be settled with the claim
            self._unsettled = self._to_settle(stored, ttls)
        found |= stored
        answered: set[WindowEntry] = set()
        return [
            _answer(delivery, found, answered)
            if not errors or all(entry in found for entry in delivery.entries)
            else errors[n]
            for n, delivery in enumerate(deliveries)
        ]

    async def rest(self, waits: Waits) -> None:
        """Settle what the last batch stored."""
        unsettled, self._unsettled = self._unsettled, None
        if unsettled is not None:
            await self._settle(unsettled, waits)

    async def _ask_window(self, entries: Collection[WindowEntry], waits: Waits) -> dict[WindowEntry, Stored]:
        """Find the events that the window knows under the very database we commit to."""
        try:
            place = await self._window_place(PLACE_REREAD_INTERVAL, waits)
            if place is None:
                return {}
            hits = [hit for part in _parts(entries) for hit in await self._claimed(place, part, waits)]
            reach("window.claimed")
            if not any(hits) or await self._window_place(PLACE_TTL, waits) != place:
                return {}
        except (WindowUnavailable, LedgerUnavailable, psycopg.Error):
            return {}
        return {
            entry: Stored(0, Verdict.DUPLICATE, entry.fingerprint)
            for entry, hit in zip(entries, hits, strict=True)
            if hit
        }

    async def _claimed(self, place: WindowPlace, entries: Sequence[WindowEntry], waits: Waits) -> list[bool]:
        """Claim events; settle the batch before on the way, if both are not too much for one script."""
        unsettled = self._unsettled
        if unsettled is None or len(unsettled.stored.entries) + len(entries) > MAX_SCRIPT_EVENTS:
            return await self._window.claim(place, entries, waits)
        self._unsettled = None
        try:
            hits, pending = await self._window.exchange(place, entries, unsettled.stored, waits)
        except WindowUnavailable as error:
            log.warning(_UNNOTIFIED, error)
            raise
        await self._has_settled(unsettled, pending, waits)
        return hits

    async def _store(
        self, deliveries: Sequence[DeliveryEvents], found: dict[WindowEntry, Stored], waits: Waits
    ) -> tuple[dict[WindowEntry, Stored], dict[int, Exception]]:
        """Store what is not found: all at once, or delivery by delivery if that fails for a reason of one of them."""
        missing = {
            entry: event
            for delivery in deliveries
            for entry, event in zip(delivery.entries, delivery.events, strict=True)
            if entry not in found
        }
        if not missing:
            return {}, {}
        for _ in range(2):
            with suppress(_LedgerMoved):
                return await self._store_missing(deliveries, missing, waits)
        moved = LedgerUnavailable("PostgreSQL was replaced twice during one batch")
        return {}, dict.fromkeys(range(len(deliveries)), moved)

    async def _store_missing(
        self, deliveries: Sequence[DeliveryEvents], missing: dict[WindowEntry, NewEvent], waits: Waits
    ) -> tuple[dict[WindowEntry, Stored], dict[int, Exception]]:
        """Store all in one ledger. Raises `_LedgerMoved` where the server was replaced halfway."""
        self._stored_in = None
        try:
            return await self._store_rounds(missing.values(), waits), {}
        except LedgerUnavailable as error:
            return {}, dict.fromkeys(range(len(deliveries)), error)
        except psycopg.Error:
            return await self._store_one_by_one(deliveries, missing, waits)

    async def _store_rounds(self, events: Iterable[NewEvent], waits: Waits) -> dict[WindowEntry, Stored]:
        """Store events, those that must see each other's rows in later statements; reconnect once if need be."""
        stored: dict[WindowEntry, Stored] = {}
        for batch in independent_batches(events):
            try:
                rows = await store_in(await self._connected(waits), batch, waits)
            except _KEEPS_CONNECTION:
                raise
            except psycopg.Error:
                self.close()
                rows = await self._store_after_reconnect(batch, waits)
            self._expect_one_ledger()
            stored |= {_entry(event): rows[event.key] for event in batch}
        return stored

    def _expect_one_ledger(self) -> None:
        """Raise `_LedgerMoved` if what was stored before, in this attempt at the batch, went to another ledger."""
        if self._stored_in is None:
            self._stored_in = self._ledgers
        elif self._stored_in != self._ledgers:
            raise _LedgerMoved

    async def _store_after_reconnect(
        self, batch: Sequence[NewEvent], waits: Waits
    ) -> dict[tuple[str, str], Stored]:
        try:
            return await store_in(await self._connected(waits), batch, waits)
        except _KEEPS_CONNECTION:
            raise
        except psycopg.Error as error:
            self.close()
            raise LedgerUnavailable(f"PostgreSQL failed twice: {type(error).__name__}") from None

    async def _store_one_by_one(
        self, deliveries: Sequence[DeliveryEvents], missing: dict[WindowEntry, NewEvent], waits: Waits
    ) -> tuple[dict[WindowEntry, Stored], dict[int, Exception]]:
        """Store delivery by delivery; one that has to wait for somebody's lock goes last and alone pays for it."""
        stored: dict[WindowEntry, Stored] = {}
        errors: dict[int, Exception] = {}
        left = list(range(len(deliveries)))
        for lock_timeout in (SHORT_LOCK_TIMEOUT, connections.LOCK_TIMEOUT):
            try:
                connection = await self._connected(waits)
                await waits.ask_server(connections.set_lock_timeout, connection, lock_timeout)
                failed = {n: await self._store_delivery(deliveries[n], missing, stored, waits) for n in left}
            except (psycopg.Error, LedgerUnavailable) as error:
                log.warning("PostgreSQL went away: %s", type(error).__name__)
                return stored, {n: LedgerUnavailable("PostgreSQL went away") for n in left}
            errors = {n: error for n, error in failed.items() if error}
            left = list(errors)
        return stored, errors

    async def _store_delivery(
        self,
        delivery: DeliveryEvents,
        missing: dict[WindowEntry, NewEvent],
        stored: dict[WindowEntry, Stored],
        waits: Waits,
    ) -> Exception | None:
        """Add one delivery's rows to `stored`, or say why it can't be done."""
        unstored = {
            entry: missing[entry] for entry in delivery.entries if entry in missing and entry not in stored
        }
        try:
            stored |= await self._store_rounds(unstored.values(), waits)
        except _KEEPS_CONNECTION as error:
            log.warning("an event could not be stored: %s", type(error).__name__)
            return LedgerUnavailable(f"PostgreSQL refused: {type(error).__name__}")
        return None

    def _to_settle(
        self, stored: dict[WindowEntry, Stored], ttls: Mapping[WindowEntry, timedelta]
    ) -> Unsettled:
        """Return what is to be told of a batch that was stored at the place where we are."""
        remembered = {
            entry
            if row.fingerprint == entry.fingerprint
            else entry._replace(fingerprint=row.fingerprint): ttls[entry]
            for entry, row in stored.items()
            if row.retry_id is None  # its own id may yet be another event's, when the retry id is too old
        }
        due = [row.id for row in stored.values() if row.verdict is Verdict.ACCEPTED and not row.is_put_off]
        return Unsettled(len(stored), Remembered(self._work_queue.queue, self._place, remembered), due)

    async def _settle(self, unsettled: Unsettled, waits: Waits) -> None:
        """Remember what is stored and notify if no notification is pending; best effort, the sweep makes up for it."""
        queue, place, entries = unsettled.stored.queue, unsettled.stored.place, unsettled.stored.entries
        try:
            pending = 0
            for part in _parts(entries) if entries else [[]]:
                remembered = Remembered(queue, place, {entry: entries[entry] for entry in part})
                pending = await self._window.settle(remembered, waits)
        except WindowUnavailable as error:
            log.warning(_UNNOTIFIED, error)
        else:
            await self._has_settled(unsettled, pending, waits)

    async def _has_settled(self, unsettled: Unsettled, pending: int, waits: Waits) -> None:
        """Notify a worker of what is due, unless a notification is pending."""
        reach("window.settled")
        if not unsettled.due or pending:
            return
        try:
            await waits.ask_server(self._work_queue.notify, unsettled.due)
        except RedisUnavailable as error:
            self._on_error("notify")
            log.warning(_UNNOTIFIED, error)
        else:
            reach("bell.rung")

    async def _window_place(self, age: timedelta, waits: Waits) -> WindowPlace | None:
        """Tell where the connection commits, and by which key, on its own word no older than `age`."""
        connection = await self._connected(waits)
        if time.monotonic() - self._place_read_at > age.total_seconds():
            try:
                self._place = await waits.ask_server(_read_place, connection)
            except psycopg.Error:
                self.close()
                raise
            self._place_read_at = time.monotonic()
        return self._place

    async def _connected(self, waits: Waits) -> psycopg.Connection:
        if self._connection is not None:
            return self._connection
        connection, self._place = await waits.ask_server(_connect, self._url)
        self._connection = connection
        self._place_read_at = time.monotonic()
        if self._place is None or self._place != self._last_ledger:
            self._ledgers += 1
        self._last_ledger = self._place
        return connection

    def close(self) -> None:
        """Close the connection; the next batch opens another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._place = None


def _connect(url: str) -> tuple[psycopg.Connection, WindowPlace | None]:
    """Open a connection, and return it with its place."""
    connection = connections.connect(url, statement=STORE_STATEMENT_TIMEOUT, is_planned_once=True)
    try:
        return connection, _read_place(connection)
    except psycopg.Error:
        connection.close()
        raise


def _read_place(connection: psycopg.Connection) -> WindowPlace | None:
    """Return the place behind a connection as the window has it; None where the server does not tell."""
    place = connections.place_of(connection)
    return place and WindowPlace(place.name, place.window_key)


def independent_batches(events: Iterable[NewEvent]) -> list[list[NewEvent]]:
    """Split so that no two events of a round share an id, be it a retry id, or (with unsigned ids) a body."""
    rounds: list[tuple[list[NewEvent], set[object]]] = []
    for event in events:
        marks: list[object] = [event.key, *((event.source, each.event_id) for each in event.retry_ids)]
        if not event.id_is_signed:
            marks.append((event.source, event.fingerprint))
            if event.repeat_mark is not None:
                marks.append((event.source, event.repeat_mark))
        for batch, taken in rounds:
            if taken.isdisjoint(marks):
                batch.append(event)
                taken.update(marks)
                break
        else:
            rounds.append(([event], set(marks)))
    return [batch for batch, _ in rounds]


def _answer(
    delivery: DeliveryEvents, found: dict[WindowEntry, Stored], answered: set[WindowEntry]
) -> list[Stored]:
    """Answer a delivery; a copy of an event that an earlier one of the batch brought is a duplicate."""
    rows = []
    for entry in delivery.entries:
        row = found[entry]
        if entry in answered and row.verdict is not Verdict.CONFLICT:
            row = row._replace(verdict=Verdict.DUPLICATE)
        answered.add(entry)
        rows.append(row)
    return rows


def _parts(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Cut into pieces of `MAX_SCRIPT_EVENTS`."""
    rest = iter(items)
    while part := list(islice(rest, MAX_SCRIPT_EVENTS)):
        yield part


def _entry(event: NewEvent) -> WindowEntry:
    return WindowEntry(event.source, event.event_id, event.fingerprint)
