"""The event that a handler is given, made here for every kind of attempt.

Whatever an event can do beside holding its data is a capability (`jobs.event.Capability`): a class with its own module,
a method of `ReceivedEvent` that asks for it, and a maker here. Nothing else of an attempt knows of it.
"""

from collections.abc import Callable
from typing import Any

from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.ports import Blocks
from hookonce.jobs.attempts.shared import Shared
from hookonce.jobs.capabilities.steps import Steps, steps_of
from hookonce.jobs.capabilities.waits import EventWaits
from hookonce.jobs.configured.origin import ORIGIN, Origin
from hookonce.jobs.event import (
    AFTER_COMMIT,
    STEPS,
    WAITS,
    AfterCommit,
    BodyDropped,
    Capability,
    ReceivedEvent,
)
from hookonce.jobs.handlers import Handler
from hookonce.jobs.provider_lookup import data_of
from hookonce.providers import Delivery
from hookonce.providers.kit.events.fields import EventView
from hookonce.providers.kit.events.subjects import Subject, subject_of
from hookonce.providers.kit.reading.content_coding import HEADER, text_and_headers
from hookonce.receiver.ledger.runs import leases
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

Maker = Callable[[Shared, ClaimedRun, Handler], Capability | None]
"""Makes a capability for one attempt; None where such a handler can have none."""


def _steps(shared: Shared, run: ClaimedRun, handler: Handler) -> Steps | None:
    if shared.steps is None or handler.batch is not None:
        return None
    return steps_of(run, handler, shared.steps, shared.sealing.keyring)


def _origin(_: Shared, run: ClaimedRun, __: Handler) -> Origin:
    return Origin(run.cycle, run.event.is_element)


def _waits(shared: Shared, run: ClaimedRun, handler: Handler) -> EventWaits | None:
    connect = shared.steps
    return connect and EventWaits(connect, run, handler, shared.sealing.keyring, shared.provider_of)


MAKERS: dict[str, Maker] = {
    STEPS: _steps,
    ORIGIN: _origin,
    AFTER_COMMIT: lambda *_: AfterCommit(),
    WAITS: _waits,
}
"""The makers of capabilities, by name."""


def event_of(
    shared: Shared, connection: AttemptConnection, run: ClaimedRun, handler: Handler, blocks: Blocks | None
) -> ReceivedEvent:
    """Make the event of a run for its handler. Raises `BodyDropped` and `CannotDecrypt`."""
    event = run.event
    if shared.sealing.keyring.is_on:
        shared.sealing.require_key()
    body, key = event.body, event.key_id
    if body is None and event.url is not None and (found := leases.load_body(connection.ledger, event)):
        body, key = found
    url, headers = event.url, event.headers or {}
    if body is None or url is None:
        raise BodyDropped(f"the body of event {event.id} was dropped by retention; it can't be handled again")
    raw = body if key is None else shared.sealing.opened(event, body, key)
    if HEADER in headers:
        raw, headers = text_and_headers(raw, headers)

    def parse() -> Any:  # noqa: ANN401  whatever the sender sent
        provider = None if event.is_element else shared.provider_of(event.source, event.provider)
        return data_of(provider, Delivery("POST", url, headers, raw))

    def subject(data: object) -> Subject | None:
        provider = shared.provider_of(event.source, event.provider)
        declared = provider.subject if provider is not None else None
        view = EventView(Delivery("POST", url, headers, raw), data, data)
        return subject_of(handler.about, declared, view, event.type, event.received_at)

    def make(name: str) -> Capability | None:
        return MAKERS[name](shared, run, handler)

    return ReceivedEvent(
        id=event.id,
        event_id=event.event_id,
        source=event.source,
        provider=event.provider,
        type=event.type,
        account=event.account,
        occurred_at=event.occurred_at,
        received_at=event.received_at,
        headers=headers,
        raw=raw,
        attempt=run.attempt,
        repeat_of=event.repeat_of,
        is_test=event.is_test,
        _handler=run.handler,
        _parse=parse,
        _make=make,
        _transactions=blocks,
        _subject=subject,
    )
