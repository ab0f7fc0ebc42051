"""Takes deliveries in: verify, parse, then window, ledger and settle as one batch with whoever else came.

*Answer 2xx only when the ledger holds the event.* The window makes that answer fast; it never makes it true.

The steps are the same for an event loop and for a thread: `receiver.processes.waits` says how each waits.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from hookonce.providers import Delivery, Event, Reason, Rejected, Reply, unreadable
from hookonce.providers.kit.reading.content_coding import HEADER, coding_of, without_coding
from hookonce.providers.kit.registry.chosen_ids import is_own
from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.intake.background_writer import BackgroundWriter
from hookonce.receiver.intake.deduplication import Deduplicator, DeliveryEvents
from hookonce.receiver.intake.group_commit import MAX_WEIGHT, GroupCommit
from hookonce.receiver.intake.handshake_secrets import (
    HandshakeSecrets,
    SecretMismatch,
    accepts_handshake_secret,
)
from hookonce.receiver.intake.intake_result import KNOWN, Arrived, IntakeResult
from hookonce.receiver.intake.limit_doubts import LimitDoubts
from hookonce.receiver.intake.load import Load
from hookonce.receiver.intake.new_events import new_event
from hookonce.receiver.intake.quarantine_buffer import QuarantineBuffer
from hookonce.receiver.intake.verification import Verifier
from hookonce.receiver.ledger.stats.counters import Kind, Tally
from hookonce.receiver.ledger.store import UNKNOWN, NewEvent, Stored, Verdict
from hookonce.receiver.logs import FINGERPRINT_DIGITS, hash_ids, limited
from hookonce.receiver.privacy.at_rest import protected, sealed
from hookonce.receiver.privacy.masking import kept_headers, kept_headers_as_json, masked_body
from hookonce.receiver.processes.waits import IN_THREAD, OnLoop, Waits, run
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow
from hookonce.receiver.redis.rate_limits import RateLimits
from hookonce.receiver.redis.work_queue import WorkQueue
from hookonce.receiver.source import Source

log = logging.getLogger(__name__)
seldom = limited(__name__)

STORE_DEADLINE = timedelta(seconds=8)
"""How long a sender waits for the ledger: most give ten seconds or more, and a busy disk takes some for a commit. Who
gives less comes again, as after a 503."""
COMMIT_WINDOW = timedelta(hours=1)
"""For how long Redis remembers an event that is no sender's."""
QUICK_BODY = 32 * 1024
"""Bytes of a body that are verified and read between two others' bytes; of a larger one a thread does it."""
RECONCILED = "reconciled"
"""The origin of an event that was taken from its sender's list."""


def utc_now() -> datetime:
    """Return what time it is."""
    return datetime.now(UTC)


class Intake:
    """The receiving side of one process; everything it opens, it opens with the first delivery.

    `clock` says when a delivery came, `trace` which span of a trace it is (`receiver.monitoring.otel`).
    """

    trace: Callable[[], str | None] | None = None
    lane: type[Deduplicator] = Deduplicator

    def __init__(self, settings: Settings, clock: Callable[[], datetime] = utc_now) -> None:
        hash_ids(hashed=settings.log_ids == "hash")
        self._clock = clock
        self.closing = ExitStack()
        """What else is closed with it."""
        self.breaker = CircuitBreaker()
        self._client = connect(settings.window_url)
        limits = RateLimits(self._client, self.breaker, 1 / settings.processes)
        self.load = Load(limits, LimitDoubts(settings.database_url))
        self._keyring = settings.keyring
        self._quarantine_buffer = QuarantineBuffer(settings.keyring)
        self.background_writer = BackgroundWriter(
            settings.database_url, settings.keyring, self._quarantine_buffer.write
        )
        is_apart = bool(settings.window_redis_url)
        queue_client = self.closing.enter_context(connect(settings.redis_url)) if is_apart else self._client
        work_queue = WorkQueue(queue_client)
        pending = work_queue.pending if is_apart else None
        window = DedupWindow(self._client, self.breaker, self._redis_failed, pending=pending)
        self._handshake_secrets = HandshakeSecrets(settings.database_url, keyring=settings.keyring)
        self._verifier = Verifier(settings.max_body, self._handshake_secrets, self.background_writer)

        def open_lane() -> Deduplicator:
            return self.lane(settings.database_url, window, work_queue, self._redis_failed)

        self._group_commit: GroupCommit[DeliveryEvents, list[Stored]] = GroupCommit(
            open_lane, weigh=attrgetter("weight")
        )
        self._heavy: GroupCommit[DeliveryEvents, list[Stored]] = GroupCommit(
            open_lane, weigh=attrgetter("weight"), waits=IN_THREAD
        )
        """For deliveries that would keep an event loop for longer than others should wait."""

    def take(self, source: Source, delivery: Delivery) -> IntakeResult:
        """Take one delivery in, the calling thread waiting for it; as `take_in`."""
        return run(self.take_in(source, delivery, IN_THREAD))

    async def take_in(self, source: Source, delivery: Delivery, waits: Waits) -> IntakeResult:
        """Take one delivery in; when this returns events, the ledger holds them.

        Raises `Rejected` (not authentic or not readable; noted), `OverLimit`, `LedgerUnavailable` and `KeyUnavailable`
        (try again).
        """
        now = self._clock()
        if _may_ask(source):
            read = await waits.ask(self._admitted, source, delivery, now)
        elif len(delivery.body) > QUICK_BODY or HEADER in delivery.headers:
            read = await waits.compute(self._admitted, source, delivery, now)
        else:
            read = self._admitted(source, delivery, now)
        if isinstance(read, Reply):
            return IntakeResult(reply=read)
        if not read.events:
            return IntakeResult()
        result = self.answer(read, await self._stored(read.new, waits))
        if source.rate or source.quota:
            await waits.ask(self._give_back, source, result)
        return result

    def begin(
        self,
        source: Source,
        delivery: Delivery,
        waits: OnLoop,
        land: Callable[[Callable[[], IntakeResult]], None],
    ) -> bool:
        """Take one delivery in as `take_in`, at once: `land` is called with what returns its result, or raises.

        False for a delivery that is refused, or that is more work; it has left no trace, and goes the other way.
        """
        try:
            read = self.read(source, delivery, self._clock())
        except Exception:  # noqa: BLE001  the other way meets it again, and tells the sender
            return False
        if isinstance(read, Reply) or not read.events or read.new.weight > MAX_WEIGHT:
            return False
        self._group_commit.call(
            read.new, STORE_DEADLINE, waits, lambda rows: land(partial(self.answer, read, rows))
        )
        return True

    def is_quick(self, source: Source) -> bool:
        """Whether what a source sends can be taken in by `begin`: nobody has to be asked for it."""
        return not (_may_ask(source) or source.provider.parts)

    def read(self, source: Source, delivery: Delivery, now: datetime) -> Arrived | Reply:
        """Verify a delivery and return its events with their rows; or the reply to a probe. Raises as `take_in`."""
        may_be_probe = source.provider.handshake or delivery.method == "OPTIONS"
        probe = self._verifier.reply_to_probe(source, delivery) if may_be_probe else None
        if probe is not None:
            return probe
        delivery, events, refused = self._verifier.authenticate(source, delivery, now)
        return Arrived(
            events, DeliveryEvents(self._rows(source, delivery, events, now), source.window), refused
        )

    def answer(self, read: Arrived, rows: list[Stored] | Exception) -> IntakeResult:
        """Note and return what became of a delivery that was read. Raises what was raised instead of rows."""
        if isinstance(rows, Exception):
            raise rows
        return IntakeResult.of(read.events, read.new.events, self._noted(read.new, rows))

    def _admitted(self, source: Source, delivery: Delivery, now: datetime) -> Arrived | Reply:
        """Read a delivery as `read`, note what is refused of it, and hold its source to its limits."""
        source = self._handshake_secrets.with_secret(source)
        try:
            read = self.read(source, delivery, now)
        except Rejected as error:
            self._note_refusal(source, delivery, error)
            raise
        if isinstance(read, Reply):
            return read
        for part, refusal in read.refused:
            self._note_refusal(source, part, refusal)
        put_off = self.load.admit(source, len(read.events)) if source.rate or source.quota else None
        if put_off is not None:
            read.new.events = [event._replace(put_off=put_off) for event in read.new.events]
        return read

    def _note_refusal(self, source: Source, delivery: Delivery, error: Rejected) -> None:
        """Count a delivery, or a part of one, that was refused, and keep of it what its source keeps."""
        holds_secret = isinstance(error, SecretMismatch)
        is_plain = not coding_of(delivery.headers)  # nothing can be masked in what is compressed
        is_kept = source.keep_body and not source.redact and not holds_secret and is_plain
        body = masked_body(delivery.body, source) if is_kept else b""
        headers = kept_headers(delivery.headers, source)
        if source.quarantine and not holds_secret:
            self._quarantine_buffer.offer(source, error.reason, delivery)
        self.background_writer.record_rejection(source.name, error.reason, error.detail, headers, body)

    def _give_back(self, source: Source, result: IntakeResult) -> None:
        """Have what was known take nothing from its source's limit."""
        known = sum(verdict in KNOWN for _, verdict in result.events)
        if known:
            self.load.give_back(source, known, is_all=result.is_duplicate)

    def reverify(self, source: Source, delivery: Delivery, at: datetime, *, store: bool) -> IntakeResult:
        """Take in what was refused then, if it is authentic as of `at`; a probe has no events, a refusal is not noted.

        Without `store` nothing is stored, and every event passes for a new one. Raises as `take` does, also where only
        some parts are authentic, which are taken in.
        """
        source = self._handshake_secrets.with_secret(source)
        if self._verifier.is_probe(source, delivery):
            return IntakeResult()
        delivery, events, refused = self._verifier.authenticate(source, delivery, at)
        result = IntakeResult([(event.id, Verdict.ACCEPTED) for event in events])
        if store:
            result = self._store(source, delivery, events, at)
        for _, error in refused:
            raise error
        return result

    def reread(self, source: Source, delivery: Delivery, at: datetime, *, store: bool) -> list[str]:
        """Take in a delivery that was verified and not readable when it came; return its events' ids in the ledger.

        Without `store` nothing is stored. Raises `Rejected` where it, or an event of it, can't be read still, and
        `LedgerUnavailable`.
        """
        source = self._handshake_secrets.with_secret(source)
        delivery, events = self._verifier.read(source, delivery)
        for event in events:
            if event.unreadable:
                raise Rejected(Reason.BAD_BODY, event.unreadable)
        new = self._rows(source, delivery, events, at)
        if not store or not new:
            return [each.event_id for each in new]
        rows = run(self._committed(DeliveryEvents(new, source.window), IN_THREAD))
        return [row.retry_id or each.event_id for each, row in zip(new, rows, strict=True)]

    def take_test(self, source: Source, delivery: Delivery, *, hold: bool = False) -> IntakeResult:
        """Take in what we signed ourselves; handlers see that its events are a test. A refusal is not noted.

        `hold`: no handler runs until somebody releases it. Raises as `take` does.
        """
        source, now = self._handshake_secrets.with_secret(source), self._clock()
        self._verifier.verify(source, delivery, now)
        delivery, events = self._verifier.read(source, delivery)
        return self._store(source, delivery, events, now, is_test=True, hold=hold, unwanted=None)

    def take_listed(self, source: Source, delivery: Delivery, now: datetime) -> IntakeResult:
        """Take in an event that its sender's own list holds, which was read from there and is not signed.

        A delivery of it that comes later is a duplicate, whatever its body. Raises `Rejected` and `LedgerUnavailable`.
        """
        delivery, events = self._verifier.read(source, delivery)
        return self._store(source, delivery, events, now, origin=RECONCILED, fingerprint=UNKNOWN)

    def take_unreadable(self, source: Source, delivery: Delivery, own: str, why: Rejected) -> IntakeResult:
        """Take in what a broker delivered and what can't be read, as an event that is dead; `own` makes its id.

        It is verified first, since a replay reads it as genuine. Raises `Rejected` (noted), `LedgerUnavailable` and
        `KeyUnavailable`.
        """
        now = self._clock()
        source = self._handshake_secrets.with_secret(source)
        try:
            self._verifier.verify_whole(source, delivery, now)
        except Rejected as error:
            self._note_refusal(source, delivery, error)
            raise
        return self._store(source, delivery, [unreadable(own.encode(), why)], now)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being stored, and what was stored is settled."""
        return self._group_commit.is_idle and self._heavy.is_idle

    def close(self) -> None:
        """Close what is open; for tests, a server's process keeps it until it ends."""
        self._group_commit.close()
        self._heavy.close()
        self._handshake_secrets.close()
        self.background_writer.close()
        self._client.close()
        self.closing.close()

    def _rows(
        self,
        source: Source,
        delivery: Delivery,
        events: Sequence[Event],
        now: datetime,
        **changes: Any,  # noqa: ANN401  of the row's fields
    ) -> list[NewEvent]:
        """Return the row of each event of a delivery."""
        if not events:
            return []
        if source.id and any(is_own(event, source.chosen) for event in events):
            seldom.warning(
                "an event has its sender's id: it lacks a place of id", extra={"source": source.name}
            )
        if delivery.sent is not None and (source.redact or any(event.raw is not None for event in events)):
            delivery = replace(delivery, headers=without_coding(delivery.headers), sent=None)
        headers = kept_headers_as_json(delivery.headers, source)
        new = [new_event(source, delivery, event, headers, now) for event in events]
        if changes:
            new = [event._replace(**changes) for event in new]
        if self._keyring.is_on or source.redact:
            new = [protected(event, source, delivery.headers, self._keyring) for event in new]
        return new

    def _store(
        self,
        source: Source,
        delivery: Delivery,
        events: Sequence[Event],
        now: datetime,
        **changes: Any,  # noqa: ANN401
    ) -> IntakeResult:
        new = self._rows(source, delivery, events, now, **changes)
        if not new:
            return IntakeResult()
        return IntakeResult.of(
            events, new, run(self._committed(DeliveryEvents(new, source.window), IN_THREAD))
        )

    def commit(self, new: Sequence[NewEvent]) -> list[Stored]:
        """Store events that are no sender's, the calling thread waiting for it; as `commit_in`."""
        return run(self.commit_in(new, IN_THREAD))

    async def commit_in(self, new: Sequence[NewEvent], waits: Waits) -> list[Stored]:
        """Store events that are no sender's, sealed where bodies are; the ledger holds them when this returns.

        Raises `LedgerUnavailable`.
        """
        if self._keyring.is_on:
            new = [sealed(event, self._keyring) for event in new]
        return await self._committed(DeliveryEvents(new, COMMIT_WINDOW), waits)

    async def _committed(self, new: DeliveryEvents, waits: Waits) -> list[Stored]:
        return self._noted(new, await self._stored(new, waits))

    async def _stored(self, new: DeliveryEvents, waits: Waits) -> list[Stored]:
        if self.trace is not None:
            trace = self.trace()
            new.events = [event._replace(traceparent=trace) for event in new.events]
        lanes = self._group_commit if new.weight <= MAX_WEIGHT else self._heavy
        return await lanes.committed(new, STORE_DEADLINE, waits)

    def _noted(self, new: DeliveryEvents, rows: list[Stored]) -> list[Stored]:
        for each, row in zip(new.events, rows, strict=True):
            if row.verdict in KNOWN:
                self.background_writer.record_redelivery(each.source, row.retry_id or each.event_id)
            elif each.unreadable:
                self.background_writer.count(Tally(Kind.UNREADABLE, each.source))
                log.warning("unreadable", extra={"source": each.source, "event": row.id})
            elif each.unwanted:
                said = {"source": each.source, "event": row.id, "type": each.type, "reason": each.unwanted}
                log.info("not accepted", extra=said)
            if row.verdict is Verdict.CONFLICT and each.provider == COMMAND:
                log.warning("key reused", extra={"source": each.source, "event": row.id})
            elif row.verdict is Verdict.CONFLICT:
                self.background_writer.count(Tally(Kind.CONFLICT, each.source))
                log.warning("conflict", extra=_conflict(each, row))
            elif not row.id:
                self.background_writer.count(Tally(Kind.WINDOW_HIT, each.source))
        return rows

    def _redis_failed(self, phase: str) -> None:
        self.background_writer.count(Tally(Kind.REDIS_ERROR, detail=phase))


def _conflict(event: NewEvent, row: Stored) -> dict[str, object]:
    """Return what the line about a conflict says; never of the bodies, and of their fingerprints no more than tells."""
    return {
        "source": event.source,
        "event": row.id,
        "reason": "another body under a known id",
        "fingerprint": event.fingerprint.hex()[:FINGERPRINT_DIGITS],
        "known_fingerprint": row.fingerprint.hex()[:FINGERPRINT_DIGITS],
    }


def _may_ask(source: Source) -> bool:
    """Whether reading a delivery of a source may wait for another machine: for keys, a secret, a count."""
    provider = source.provider
    asks_for_secret = not source.secrets and accepts_handshake_secret(source)
    return bool(provider.takes_keys or provider.handshake or asks_for_secret or source.rate or source.quota)
