"""Whether a sender's events tell which object they are about, and which state of it is the newer one."""

from datetime import datetime

from hookonce.providers import Delivery, Event
from hookonce.providers.kit.conformance.cases import expect
from hookonce.providers.kit.events.fields import EventView
from hookonce.providers.kit.events.subjects import Subject, subject_of
from hookonce.providers.kit.provider import Provider

Received = tuple[Delivery, datetime]
"""A delivery of one event, and when it was received."""


def check_states(provider: Provider, older: Received, newer: Received, other: Received) -> None:
    """Two states of one object are about one entity of one account, with rising versions; `other` about another."""
    (first, was), (second, now), (_, unlike) = (
        _read(provider, *received) for received in (older, newer, other)
    )
    expect(was.entity == now.entity, f"two states of one object are about {was.entity!r} and {now.entity!r}")
    expect(first.account == second.account, "two states of one object are of two accounts")
    expect(was.version < now.version, f"the newer state has version {now.version}, the older {was.version}")
    expect(unlike.entity != now.entity, f"two objects are about {now.entity!r}")


def _read(provider: Provider, delivery: Delivery, received_at: datetime) -> tuple[Event, Subject]:
    (event,) = provider.events(delivery)
    view = EventView(delivery, event.data, event.data)
    subject = subject_of(None, provider.subject, view, event.type, received_at)
    expect(subject is not None, f"an event of type {event.type} has no subject that can be read")
    assert subject is not None  # noqa: S101  for type checkers
    return event, subject
