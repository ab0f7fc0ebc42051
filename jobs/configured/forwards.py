"""`[forwards.NAME]`: handlers of our own that send events on, to a broker in batches or to an endpoint one by one.

A message's id is the run's key and its cycle: each attempt has the same, a replay another. What a broker has confirmed
is remembered, so that a batch that comes again in halves sends only the rest. A place that is away costs no attempt at
first; after `PATIENCE` it is a failure, so that the breaker stops the handler and tries from time to time. So is a
message that its place does not answer, while it answers others. A place that does nothing but ask to wait (429) is a
failure after `BUSY_PATIENCE`.
"""

import logging
import os
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hookonce.jobs.configured.origin import cycle_key, origin_of
from hookonce.jobs.event import QuotesNothing, ReceivedEvent
from hookonce.jobs.handlers import GiveUp, Handler, HandlerError, Registry, RetryLater
from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.addresses import Address, mark_of
from hookonce.receiver.config.forwards import AS_SENDER, BACKOFF, Forward
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.secret_references import why_absent
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.results import LeftOut
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.outbound import brokers
from hookonce.receiver.outbound.brokers import endpoint
from hookonce.receiver.outbound.brokers.port import (
    Away,
    Busy,
    Message,
    Never,
    NotConfirmed,
    Outcome,
    Publisher,
    Refused,
    encoded,
)
from hookonce.receiver.outbound.signing import EventName, NotSigned, signed_anew
from hookonce.receiver.source import Source

log = logging.getLogger(__name__)

BATCH: Final = BatchSize(100, timedelta(milliseconds=100))
TIMEOUT: Final = timedelta(seconds=30)
BREAKER: Final = 5
PATIENCE: Final = timedelta(minutes=1)
"""How long a place, or its answer to one message, may be away before that counts as a failure."""
BUSY_PATIENCE: Final = timedelta(hours=1)
PAUSE: Final = (0.5, 2.0)
"""Seconds: between these an event is due again whose place is away."""
VIA: Final = "hookonce-via"
"""The header with the places that an event has been at."""
MOST_PLACES: Final = 16
REST: Final = 10.0
"""Seconds at most for which a broker that is away is not asked: batches of other handlers wait meanwhile."""
_REMEMBERED: Final = 10_000


class NotForwarded(QuotesNothing):
    """An event that its place has not taken."""


class NeverForwarded(GiveUp, QuotesNothing):
    """An event that its place will never take."""


def register(registry: Registry, settings: Settings) -> None:
    """Have a worker forward events. Raises `ConfigError` for what a worker lacks, `HandlerError` for another `when`."""
    for forward in settings.forwards.values():
        if registry.named(forward.handler) is not None:
            continue
        made = forwarder_of(forward, settings)
        function, batch = (made.publish, BATCH) if made.is_batched else (made.post, None)
        for pattern in dict.fromkeys(forward.types):
            registry.add(
                Handler(
                    forward.handler,
                    forward.source,
                    pattern,
                    function,
                    forward.attempts,
                    BACKOFF,
                    TIMEOUT,
                    breaker=BREAKER,
                    batch=batch,
                )
            )


def forwarder_of(forward: Forward, settings: Settings) -> "Forwarder":
    """Return what sends a forward's events. Raises as `register`."""
    if forward.address is None:
        raise ConfigError([f"[forwards.{forward.name}] to: {forward.to} is not set; a worker needs it"])
    if forward.address.kind != "https":
        brokers.broker(forward.address)  # raises where its extra is missing
    elif forward.sign != AS_SENDER:
        check = load("standard_webhooks", (), None).check_secret
        try:
            if check:
                check(forward.secret or "")
        except ValueError as error:
            why = error or why_absent(forward.secret or "")
            raise ConfigError([f"[forwards.{forward.name}] secret: {why}; a worker signs with it"]) from None
    return Forwarder(forward, forward.address, settings.sources)


def _compiled(forward: Forward) -> Any:  # noqa: ANN401  of a library without types
    """Return what `when` says, compiled; None for all events."""
    if not forward.when:
        return None
    try:
        import jmespath

        return jmespath.compile(forward.when)
    except ImportError:
        text = "[forwards] when needs a package more; run pip install 'hookonce[jmespath]'"
        raise ConfigError([text]) from None
    except ValueError as error:
        said = str(error).split("\n", 1)[0]
        raise HandlerError(f"[forwards.{forward.name}] when: not a JMESPath: {said}") from None


class Forwarder:
    """Sends the events of one forward; connections are made in the process that sends."""

    def __init__(self, forward: Forward, to: Address, sources: Mapping[str, Source]) -> None:
        self.to = to
        self.is_batched = to.kind != "https"
        self._forward = forward
        self._sources = sources
        self._when = _compiled(forward)
        self._lock = threading.Lock()
        self._publisher: tuple[int, Publisher] | None = None
        self._confirmed: OrderedDict[str, float] = OrderedDict()
        self._first_away: OrderedDict[str, float] = OrderedDict()
        self._since: dict[bool, float] = {}  # it is away (False), or busy (True)
        self._asked_again = 0.0

    def post(self, event: ReceivedEvent, tx: object) -> Mapping[str, LeftOut] | None:
        """Send one event, as `publish` does."""
        return self.publish([event], tx)[0]

    def publish(self, events: Sequence[ReceivedEvent], _tx: object) -> list[Mapping[str, LeftOut] | None]:
        """Send events, and return why each was left out, once the others are confirmed."""
        why = [self._left_out(event) for event in events]
        made = [
            (event, self._message(event)) for event, each in zip(events, why, strict=True) if each is None
        ]
        left = [(event, message) for event, message in made if message.id not in self._confirmed]
        if left:
            self._send(left, len(events))
        return [None if each is None else {"skipped": each} for each in why]

    def _send(self, left: Sequence[tuple[ReceivedEvent, Message]], size: int) -> None:
        """Send messages of a batch of so many events. Raises what becomes of it unless all are confirmed."""
        now = time.monotonic()
        if self._asked_again > now:
            raise _later([event for event, _ in left], size, self._asked_again - now)
        outcomes = self._outcomes([message for _, message in left], left[0][0])
        early, failed, wait = [], None, None
        for (event, message), outcome in zip(left, outcomes, strict=True):
            if isinstance(outcome, Never):
                raise NeverForwarded(str(outcome), event=event)
            if isinstance(outcome, Away) and not self._is_late(message.id, outcome):
                early.append(event)
                wait = outcome.wait
            else:
                failed = failed or outcome
        if early:
            raise _later(early, size) if wait is None else RetryLater(wait)
        if failed:
            raise NotForwarded(str(failed))

    def _outcomes(self, messages: Sequence[Message], event: ReceivedEvent) -> Sequence[Outcome]:
        """Send messages; remember what is confirmed, and how long a broker was waited for that confirms nothing."""
        began = time.monotonic()
        outcomes = (
            self._publisher_here().publish(messages)
            if self.is_batched
            else [self._posted(event, messages[0])]
        )
        ended = time.monotonic()
        if not all(isinstance(each, Away) for each in outcomes):
            self._since.clear()
        elif self.is_batched:
            self._asked_again = ended + min(2 * (ended - began), REST)
        for message, outcome in zip(messages, outcomes, strict=True):
            if outcome is None:
                _keep(self._confirmed, message.id, ended)
                self._first_away.pop(message.id, None)
        return outcomes

    def _is_late(self, message: str, why: Away) -> bool:
        """Return whether the place has been away for longer than `PATIENCE`, for all messages or for this one.

        A place that is busy takes other messages first, so it counts as long as it takes none.
        """
        now, is_busy = time.monotonic(), isinstance(why, Busy)
        if is_busy not in self._since:
            (log.debug if is_busy else log.warning)("%s: %s", self._forward.handler, why)
        since = self._since.setdefault(is_busy, now)
        if is_busy:
            return now - since > BUSY_PATIENCE.total_seconds()
        first = self._first_away.get(message, now)
        _keep(self._first_away, message, first)
        return now - min(first, since) > PATIENCE.total_seconds()

    def _publisher_here(self) -> Publisher:
        """Return this process's publisher: a fork has none of its parent's threads."""
        with self._lock:
            if self._publisher is None or self._publisher[0] != os.getpid():
                self._publisher = os.getpid(), Publisher(brokers.broker(self.to))
            return self._publisher[1]

    def _posted(self, event: ReceivedEvent, message: Message) -> Outcome:
        try:
            made = self._delivery(event, message)
        except NotConfirmed as error:
            return error
        return endpoint.post(made.url, made.headers, made.body, allow_private=self._forward.allow_private)

    def _delivery(self, event: ReceivedEvent, message: Message) -> Delivery:
        """Return what is posted: as the sender would, or as Standard Webhooks say. Raises `Refused`."""
        now, more = datetime.now(UTC), encoded(message.headers)
        if self._forward.sign != AS_SENDER:
            sign = load("standard_webhooks", (), None).sign
            signed = sign(event.raw, self._forward.secret or "", now, event_id=message.id)
            return Delivery("POST", self.to.url, {**more, **signed}, event.raw)
        source = self._sources.get(event.source)
        if source is None:
            raise Refused(f"source '{event.source}' is not configured here, so nothing signs as its sender")
        secret = self._forward.secret or next(iter(source.secrets), "")
        # A sender that has no attributes of CloudEvents signs none: in a genuine delivery they may be anybody's.
        is_theirs = "header ce-id" in getattr(source.provider.identity, "places", ())
        headers = {
            name: event.headers[name] for name in event.headers if is_theirs or not name.startswith("ce-")
        }
        stored = Delivery("POST", self.to.url, headers, event.raw)
        name, is_element = EventName(event.event_id, event.type), origin_of(event).is_element
        try:
            made = signed_anew(source.provider, secret, stored, name, now, is_element=is_element)
        except NotSigned as error:
            raise Never(f"it can't be signed for {source.name}: {error}") from None
        return Delivery("POST", made.url, {**more, **made.headers, VIA: more[VIA]}, made.body)

    def _places(self, event: ReceivedEvent) -> list[str]:
        """Return the places that an event has been at: those that it says, and where its source takes it from."""
        source = self._sources.get(event.source)
        told = [each for each in event.headers.get(VIA, "").split(",") if each]
        return [*told, mark_of(source.shown_url)] if source and "://" in source.shown_url else told

    def _left_out(self, event: ReceivedEvent) -> LeftOut | None:
        """Return why an event is not sent; None where it is."""
        if self.to.mark in self._places(event):
            return LeftOut.BEEN_THERE
        try:
            return None if self._when is None or self._when.search(event.data) else LeftOut.NO_MATCH
        except Exception:  # noqa: BLE001  whatever an expression does with what a sender sent
            return LeftOut.WHEN_FAILED

    def _message(self, event: ReceivedEvent) -> Message:
        """Return the message of an event, with the headers of CloudEvents 1.0."""
        subject = event.subject.entity if event.subject else ""
        time_of_it = (event.occurred_at or event.received_at).astimezone(UTC)
        headers = {
            "ce-specversion": "1.0",
            "ce-id": event.event_id,
            "ce-source": f"/hooks/{event.source}",
            "ce-type": event.type or "unknown",
            "ce-time": time_of_it.isoformat().replace("+00:00", "Z"),
            "ce-subject": subject,
            "content-type": event.headers.get("content-type", "application/json"),
            VIA: ",".join([*self._places(event), self.to.mark][-MOST_PLACES:]),
        }
        group = subject or event.account or event.source
        return Message(cycle_key(event), event.type, group, headers, event.raw)


def _later(some: Sequence[ReceivedEvent], size: int, rest: float = 0) -> RetryLater:
    """Return what puts off some of a batch's events, after a rest; it names them where they are not all."""
    pause = rest + random.uniform(*PAUSE)  # noqa: S311  spreads load, keeps no secret
    return RetryLater(pause, event=some if len(some) < size else None)


def _keep(known: OrderedDict[str, float], name: str, value: float) -> None:
    """Remember something of a message; the one that was told longest ago is forgotten."""
    known[name] = value
    if len(known) > _REMEMBERED:
        known.popitem(last=False)
