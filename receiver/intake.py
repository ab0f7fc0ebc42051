"""Takes deliveries in: verify, parse, then window, ledger and settle as one batch with whoever else came.

*Answer 2xx only when the ledger holds the event.* The window makes that answer fast; it never makes it true.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from gevent import Timeout, idle

from providers import Delivery, Event, Reason, Rejected, Reply
from providers.kit.events import UNREADABLE
from providers.kit.fingerprint import fingerprint
from providers.kit.provider import Provider
from receiver.batch import Lane, Parcel
from receiver.breaker import Breaker
from receiver.committer import Committer, TooLate
from receiver.database import LedgerUnavailable
from receiver.failpoints import reach
from receiver.handed import HandedOut, OtherSecret
from receiver.handoff import Bell
from receiver.keys import Keys
from receiver.ledger.store import NewEvent, Stored, Verdict
from receiver.masks import kept_headers, masked_body, masked_url
from receiver.protection import protected
from receiver.settings import Settings
from receiver.slots import verifying_slot
from receiver.sources import Source
from receiver.tally import Tally
from receiver.ward import Ward
from receiver.window import Window, connect

log = logging.getLogger(__name__)

DEADLINE = timedelta(seconds=2)
GATHERING = timedelta(milliseconds=2)
"""How long a batch may wait for requests that are already being worked on; never for one that may come."""
MOST_EVENTS = 15_000
"""Events of one delivery: as many as the ledger takes in one statement in time."""
MOST_COPIED = 64 * 1024 * 1024
"""Characters of headers that one delivery may bring, since each of its events keeps them."""
LONGEST_ID = 255
LONGEST_LABEL = 255
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT_REFUSES = {
    0: "\N{REPLACEMENT CHARACTER}",
    **dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a delivery: `reply` where the sender wants its own, and the events in order, with their rows."""

    events: Sequence[tuple[str, Verdict]] = field(default_factory=tuple)
    reply: Reply | None = None
    rows: Sequence[Stored] = field(default_factory=tuple)

    @property
    def is_duplicate(self) -> bool:
        """Whether every event was known before; False for a delivery of none."""
        return bool(self.events) and all(v in {Verdict.DUPLICATE, Verdict.CONFLICT} for _, v in self.events)

    @property
    def is_conflict(self) -> bool:
        """Whether an event came with another body than before."""
        return any(verdict is Verdict.CONFLICT for _, verdict in self.events)


def utc_now() -> datetime:
    """Say what time it is."""
    return datetime.now(UTC)


class Intake:
    """The receiving side of one process; everything it opens, it opens with the first delivery.

    `clock` says when a delivery came, `trace` which span of a trace it is (`receiver.otel`).
    """

    trace: Callable[[], str | None] | None = None

    def __init__(self, settings: Settings, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock
        self.breaker = Breaker()
        self._client = connect(settings.redis_url)
        window, bell = Window(self._client, self.breaker), Bell(self._client)
        self._keyring = settings.keyring
        self._ward = Ward(settings.keyring)
        self.tally = Tally(settings.database_url, settings.keyring, self._ward.write)
        self._keys = Keys()
        self._handed = HandedOut(settings.database_url)
        self._committer: Committer[Parcel, list[Stored]] = Committer(
            lambda: Lane(settings.database_url, window, bell), gather=_let_others_run
        )

    def take(self, source: Source, delivery: Delivery) -> Outcome:
        """Take one delivery in; when this returns events, the ledger holds them.

        Raises `Rejected` (not authentic or not readable; noted), `LedgerUnavailable` and `KeyUnavailable` (try again).
        """
        source, now = self._handed.armed(source), self._clock()
        try:
            probe = self._probe(source, delivery)
            if probe is not None:
                return Outcome(reply=probe)
            delivery, events = self._authenticate(source, delivery, now)
        except Rejected as error:
            holds_secret = isinstance(error, OtherSecret)
            body = b"" if holds_secret or source.redact else masked_body(delivery.body, source)
            headers = kept_headers(delivery.headers, source)
            if source.quarantine and not holds_secret:
                self._ward.note(source, error.reason, delivery)
            self.tally.rejected(source.name, error.reason, error.detail, headers, body)
            raise
        return self._store(source, delivery, events, now)

    def retake(self, source: Source, delivery: Delivery, at: datetime, *, is_taking: bool) -> Outcome:
        """Take in what was refused then, if it is authentic as of `at`; a probe has no events, a refusal is not noted.

        Without `is_taking` nothing is stored, and every event passes for a new one. Raises as `take` does.
        """
        source = self._handed.armed(source)
        handshake = source.provider.handshake
        if handshake and self._keys.call(source, handshake, delivery, source.secrets) is not None:
            return Outcome()
        delivery, events = self._authenticate(source, delivery, at)
        if not is_taking:
            return Outcome([(event.id, Verdict.ACCEPTED) for event in events])
        return self._store(source, delivery, events, at)

    def close(self) -> None:
        """Close what is open; for tests, a server's process keeps it until it ends."""
        self._committer.close()
        self._handed.close()
        self.tally.close()
        self._client.close()

    def _probe(self, source: Source, delivery: Delivery) -> Reply | None:
        handshake = source.provider.handshake
        reply = self._keys.call(source, handshake, delivery, source.secrets) if handshake else None
        if reply is not None and reply.fetch is not None:
            self._keys.confirm(source, reply.fetch)
        if reply is not None and reply.secret is not None:
            self._handed.take(source, reply.secret)
        return reply

    def _authenticate(
        self, source: Source, delivery: Delivery, now: datetime
    ) -> tuple[Delivery, list[Event]]:
        """Verify a delivery; give it as it is to be kept (open, if its sender encrypts), and its events."""
        provider = source.provider
        if delivery.method in {"HEAD", "OPTIONS"}:
            raise Rejected(Reason.BAD_METHOD, f"{delivery.method} is not how webhooks are delivered")
        if not source.unauthenticated:
            if not source.secrets and provider.needs_secret:
                raise Rejected(Reason.NO_SECRET, f"source '{source.name}' has no signing secret")
            self._verify(source, delivery, now)
        reach("delivery.verified")
        opened = provider.opened(delivery, source.secrets) if provider.opened else delivery
        events = provider.events(opened)
        if len(events) > MOST_EVENTS:
            raise Rejected(Reason.TOO_LARGE, f"{len(events)} events in one delivery, {MOST_EVENTS} are taken")
        if len(events) > 1 and len(events) * sum(map(len, delivery.headers.values())) > MOST_COPIED:
            raise Rejected(Reason.TOO_LARGE, f"headers too long to be kept {len(events)} times")
        reach("delivery.parsed")
        return opened, events

    def _verify(self, source: Source, delivery: Delivery, now: datetime) -> None:
        def verify(secrets: Sequence[str]) -> None:
            self._keys.call(source, source.provider.verify, delivery, secrets, now)

        slot = verifying_slot(verify, source.secrets)
        if slot is not None:
            self.tally.verified(source.name, slot)

    def _store(self, source: Source, delivery: Delivery, events: Sequence[Event], now: datetime) -> Outcome:
        if not events:
            return Outcome()
        headers = json.dumps(kept_headers(delivery.headers, source))
        new = [_new_event(source, delivery, event, headers, now) for event in events]
        if self._keyring.is_on or source.redact:
            new = [protected(event, source, delivery.headers, self._keyring) for event in new]
        if self.trace is not None:
            trace = self.trace()
            new = [replace(event, traceparent=trace) for event in new]
        parcel = Parcel(new, source.window)
        try:
            rows = self._committer.submit(parcel, DEADLINE)
        except TooLate:
            raise LedgerUnavailable("the ledger did not answer in time") from None
        for each, row in zip(new, rows, strict=True):
            if row.verdict in {Verdict.DUPLICATE, Verdict.CONFLICT}:
                self.tally.redelivered(source.name, each.event_id)
            if row.verdict is Verdict.CONFLICT:
                log.warning("conflict", extra={"source": source.name, "event": row.id})
        return Outcome([(event.id, row.verdict) for event, row in zip(events, rows, strict=True)], rows=rows)


def _let_others_run() -> None:
    """Wait until every request that can go on has done so: larger batches cost less an event."""
    with Timeout(GATHERING.total_seconds(), False):  # noqa: FBT003  gevent's own
        idle()


def ledger_id(event_id: str) -> str:
    """Give the id as the ledger keeps it: itself, or its SHA-256 where it is too long or no PostgreSQL text.

    Different ids stay different, the same id stays the same.
    """
    encoded = event_id.encode("utf-8", "surrogatepass")
    is_text = event_id.translate(_TEXT_REFUSES) == event_id
    if len(encoded) <= LONGEST_ID and is_text and not event_id.startswith("sha256:"):
        return event_id
    return "sha256:" + hashlib.sha256(encoded).hexdigest()


def period_of(provider: Provider, now: datetime) -> str:
    """Give what time of receipt adds to an event id: nothing, unless equal bodies may be different events."""
    if provider.id_period is None:
        return ""
    return f"@{now - (now - _EPOCH) % provider.id_period:%Y-%m-%dT%H:%M:%SZ}"


def _label(value: str) -> str:
    """Make a sender's text fit a text column: no NUL, no lone surrogate, a bounded length."""
    return value[:LONGEST_LABEL].translate(_TEXT_REFUSES)


def _is_unreadable(event: Event) -> bool:
    """Tell an element that could not be read from one whose sender calls its type just that."""
    return (
        event.raw is not None
        and event.type == UNREADABLE
        and event.id == hashlib.sha256(event.raw).hexdigest()
    )


def _new_event(source: Source, delivery: Delivery, event: Event, headers: str, now: datetime) -> NewEvent:
    provider = source.provider
    body = delivery.body if event.raw is None else event.raw
    return NewEvent(
        source=source.name,
        provider=provider.name,
        event_id=ledger_id(event.id + period_of(provider, now)),
        type=_label(event.type),
        account=None if event.account is None else _label(event.account),
        fingerprint=fingerprint(body, provider.volatile),
        id_is_signed=provider.id_is_signed,
        occurred_at=event.occurred_at if event.occurred_at and event.occurred_at.tzinfo else None,
        url=masked_url(delivery.url, source).translate(_TEXT_REFUSES),
        headers=headers,
        body=body,
        is_element=event.raw is not None,
        is_readable=not _is_unreadable(event),
        hold_repeats=source.repeats == "hold",
    )
