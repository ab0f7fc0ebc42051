"""Makes the ledger's rows of a delivery's events: ids and labels that fit, what is masked, what is kept."""

import hashlib
from datetime import UTC, datetime, timedelta

from hookonce.providers import Delivery, Event
from hookonce.providers.kit.events.fingerprint import delivery_fingerprint, fingerprint
from hookonce.providers.kit.provider import Provider
from hookonce.receiver.ledger.store import NewEvent, RetryId
from hookonce.receiver.privacy.masking import masked_url
from hookonce.receiver.source import Source

MAX_ID_BYTES = 255
MAX_LABEL_LENGTH = 255
_UNKNOWN_HORIZON = timedelta(days=3)
"""For how long a retry id counts of a sender that does not say when it gives up; most of those that do say less."""
_SHORTEST_HORIZON = timedelta(minutes=1)
_STEPS = 6
"""Of a period of receipt: what comes again within five of them is the same event, and after six it is another."""
_MARK = 16
"""Hexadecimal digits of a body's fingerprint in such an id."""
_ANY_AGE = timedelta(days=3650)
"""Of ids that hold their time; quarantine is left late."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MOMENT, _LAST_MOMENT = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_TEXT_REFUSES = {
    0: "\N{REPLACEMENT CHARACTER}",
    **dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}"),
}


def ledger_id(event_id: str) -> str:
    """Return the id as the ledger keeps it: itself, or its SHA-256 where it is too long or not PostgreSQL text.

    Different ids stay different, the same id stays the same.
    """
    encoded = event_id.encode("utf-8", "surrogatepass")
    is_text = _as_text(event_id) == event_id
    if len(encoded) <= MAX_ID_BYTES and is_text and not event_id.startswith("sha256:"):
        return event_id
    return "sha256:" + hashlib.sha256(encoded).hexdigest()


def receipt_of(provider: Provider, event: Event, mark: bytes, now: datetime) -> str:
    """Return what the receipt adds to an event id: nothing, unless bodies without an id may be different events.

    That is what tells its body from another with the same id (`mark` is its fingerprint), and the time, in steps.
    """
    period = _id_period(provider, event)
    if period is None or event.is_undated is False:
        return ""
    return _receipt(mark, now, period / _STEPS)


def _id_period(provider: Provider, event: Event) -> timedelta | None:
    """Return within which time an equal body is the same event, of events without an id of their own.

    An unreadable delivery is such an event for as long as its sender may try again.
    """
    if event.unreadable and event.raw is None:
        return max(provider.retry_horizon or _UNKNOWN_HORIZON, _SHORTEST_HORIZON)
    return provider.id_period


def _receipt(mark: bytes, now: datetime, step: timedelta) -> str:
    return f"+{mark.hex()[:_MARK]}@{_rounded(now, step)}"


def retry_ids(provider: Provider, event: Event, mark: bytes, now: datetime) -> tuple[RetryId, ...]:
    """Return the ids that another attempt to deliver the event may have, and how recently such an attempt came.

    `mark` is the event's fingerprint. Its `Event.retry_ids` count for as long as its sender may try again. Where the
    time of receipt is a part of ids, so do those of the steps before, since a retry may cross the end of one, and of
    the steps that follow: receivers' clocks differ, and a quarantined delivery is taken in after its retry.
    """
    horizon = provider.retry_horizon or _UNKNOWN_HORIZON
    found = [RetryId(ledger_id(each), horizon) for each in event.retry_ids]
    period = _id_period(provider, event)
    if period is None:
        return tuple(found)
    step = period / _STEPS
    own = receipt_of(provider, event, mark, now)
    names = (event.id, *event.retry_ids) if own else event.retry_ids
    near = [_receipt(mark, now + n * step, step) for n in range(1 - _STEPS, _STEPS)]
    ids = dict.fromkeys(each + at for each in names for at in near)
    return (*found, *(RetryId(ledger_id(each), _ANY_AGE) for each in ids if each != event.id + own))


def _rounded(moment: datetime, step: timedelta) -> str:
    return f"{moment - (moment - _EPOCH) % step:%Y-%m-%dT%H:%M:%SZ}"


def _label(value: str) -> str:
    """Return a sender's text as it fits a text column: no NUL, no lone surrogate, a bounded length."""
    return _as_text(value[:MAX_LABEL_LENGTH])


def _as_text(value: str) -> str:
    """Return a sender's text as PostgreSQL takes it; nearly all is plain, which is seen at a tenth of the cost."""
    return value if value.isascii() and "\0" not in value else value.translate(_TEXT_REFUSES)


def plausible_time(moment: datetime | None) -> datetime | None:
    """Return a sender's time, or None for one that can't be meant: without a zone, or in no year of webhooks.

    The year 1 (zero in Go and .NET) and the year 9999 say "no time". In some time zones they lie outside what Python
    can hold, and their rows could not be read.
    """
    if moment is None or moment.tzinfo is None or not _FIRST_MOMENT <= moment < _LAST_MOMENT:
        return None
    return moment


def _unwanted(source: Source, delivery: Delivery, event: Event) -> str | None:
    """Return why a source does not accept an event: None where it does, or where the event says no mode."""
    found = source.provider.mode_of(delivery, event) if source.accept else None
    if found is None or found == source.accept:
        return None
    return f'a {found} event, and source {source.name} has accept = "{source.accept}"'


def new_event(source: Source, delivery: Delivery, event: Event, headers: str, now: datetime) -> NewEvent:
    """Return the row of one event of a delivery; `headers` is JSON, without secrets."""
    provider = source.provider
    body = delivery.body if event.raw is None else event.raw
    mark = provider.nonce_mark(delivery, event) or (
        delivery_fingerprint(delivery, provider.volatile)
        if event.raw is None
        else fingerprint(body, provider.volatile)
    )
    return NewEvent(
        source=source.name,
        provider=provider.name,
        event_id=ledger_id(event.id + receipt_of(provider, event, mark, now)),
        type=_label(event.type),
        account=None if event.account is None else _label(event.account),
        fingerprint=mark,
        id_is_signed=provider.id_is_signed,
        occurred_at=plausible_time(event.occurred_at),
        url=_as_text(masked_url(delivery.url, source)),
        headers=headers,
        body=body if delivery.sent is None else delivery.sent,
        is_element=event.raw is not None,
        unreadable=_label(event.unreadable) if event.unreadable else None,
        unwanted=_unwanted(source, delivery, event),
        hold_repeats=source.repeats == "hold",
        keep_body=source.keep_body,
        repeat_mark=provider.repeat_mark(delivery, event),
        retry_ids=retry_ids(provider, event, mark, now),
    )
