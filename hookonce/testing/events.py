"""Events as handlers get them, made from the samples of each sender and signed as it does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from typing import ParamSpec, TypeVar

from hookonce.jobs.event import ReceivedEvent
from hookonce.providers import Delivery, Rejected
from hookonce.providers import Event as SentEvent
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.dev import generated_secrets
from hookonce.receiver.samples import documents, edits
from hookonce.receiver.samples.documents import Document

__tracebackhide__ = True  # a test that fails shows the user's lines

_URL = "https://hooks.example.com/hooks/"
HANDLER = "handler"
"""Whose idempotency key an event has that no run has made."""
_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def event(  # noqa: PLR0913  all but two by keyword
    source: str,
    type: str | None = None,  # noqa: A002  the word of the vocabulary
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002  as in `hookonce trigger --set`
    remove: Sequence[str] = (),
    event_id: str | None = None,
    at: datetime | None = None,
    attempt: int = 1,
    is_test: bool = False,
    provider: str | None = None,
) -> ReceivedEvent:
    """Return an event of a type, from the sample that hookonce has of it; ids and times in it are new.

    `source` is one of hookonce.toml's, or the name of a sender; `provider` says the sender of any other. Without a
    type it is what the sender sends most. `set` puts values at paths of the body, `{"data.object.amount": 500}`, and
    `remove` takes some out. Raises: LookupError for a type without a sample, with the nearest one; ValueError for a
    path that can't be, and for the few senders whose bodies nobody else can make.
    """
    sender = provider_of(source, provider)
    now = at or datetime.now(UTC)
    document = sample(sender, type, now, event_id, set or {}, remove)
    delivery, sent = _read(sender, document, now, f"{_URL}{source}")
    data = sent.data
    return ReceivedEvent(
        id=1,
        event_id=sent.id,
        source=source,
        provider=sender.name,
        type=sent.type,
        account=sent.account,
        occurred_at=sent.occurred_at,
        received_at=now,
        headers=delivery.headers,
        raw=delivery.body,
        attempt=attempt,
        repeat_of=None,
        is_test=is_test,
        _handler=HANDLER,
        _parse=lambda: data,
    )


def _raising_here(make: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Have mistakes of a test raised in this module, whose frames are not shown."""

    @wraps(make)
    def made(*given: _Given.args, **named: _Given.kwargs) -> _Made:
        try:
            return make(*given, **named)
        except (LookupError, ValueError) as error:
            mistake = error
        raise mistake.with_traceback(None)

    return made


@_raising_here
def provider_of(source: str, provider: str | None = None) -> Provider:
    """Return who sends to a source: as hookonce.toml says, else the sender of that name. Raises: LookupError."""
    settings = load_settings(need_secrets=False)
    if provider is None and source in settings.sources:
        return settings.sources[source].provider
    return load((provider or source).replace("-", "_"), settings.provider_places)


@_raising_here
def sample(  # noqa: PLR0913, PLR0917  what the sample is of
    provider: Provider,
    type: str | None,  # noqa: A002
    now: datetime,
    event_id: str | None,
    changes: Mapping[str, object],
    removals: Sequence[str],
) -> Document:
    """Return a sample, changed. Raises: LookupError, ValueError."""
    document = documents.fresh(provider, type, now, event_id)
    for path in removals:
        document.remove(path)
    for path, value in changes.items():
        if document.form == "text":
            document.set(f"{path}=")  # which says why not
        edits.set_value(document.body, path, value)
    return document


def _read(provider: Provider, document: Document, now: datetime, url: str) -> tuple[Delivery, SentEvent]:
    """Return the delivery as it is kept, and its first event; unsigned where only the sender can sign."""
    secret = generated_secrets.made_up(provider) or ""
    try:
        delivery = document.delivery(secret, now, url)
    except ValueError:
        delivery = Delivery("POST", url, dict(document.headers), document.encoded())
    if provider.decode and secret:
        delivery = provider.decode(delivery, (secret,))
    delivery = replace(delivery, headers={name.lower(): value for name, value in delivery.headers.items()})
    try:
        return delivery, provider.events(delivery)[0]
    except Rejected as error:
        raise ValueError(
            f"a sample of {provider.name} is no event without its sender's own signature ({error.detail})"
        ) from None
