"""Mollie's next-generation webhooks sign the body with HMAC-SHA256, hex behind `sha256=`.

For 24 hours after a rotation the header is sent twice, once for each secret. The id is `$.id`, the event's.
Ten tries in 26 hours, after which the webhook is blocked.

Classic webhooks are a form `id=tr_…` that says which payment, order or subscription to ask the API for, and prove
nothing. The option `classic = true` takes these instead, at a URL that ends with the secret. The same form comes with
each change, so the minute of receipt is part of the event's id; the type is what the id is of, `payment`.

https://docs.mollie.com/reference/webhooks-new
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Unpack
from urllib.parse import urlencode

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    FORM,
    Configured,
    EventView,
    Extractor,
    Hmac,
    Sender,
    SignOptions,
    body_digest,
    field,
    first,
    fixed,
    form_body,
    one_event,
    path_secret,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.registry.options import Options

scheme = Hmac(header="x-mollie-signature", prefix="sha256=", separator=",")
_events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.organizationId"),
    occurred_at=field("$.createdAt"),
)
_HORIZON: Final = timedelta(days=2)
_KINDS: Final = {
    "tr": "payment",
    "ord": "order",
    "sub": "subscription",
    "pl": "payment-link",
    "stl": "settlement",
}


def _kind(view: EventView) -> object:
    """What the id is of, by its prefix."""
    number = str(field("$.id").get(view))
    return _KINDS.get(number.partition("_")[0], "unknown")


_classic_events = one_event(id=field("$.id"), type=Extractor(_kind, "the id's prefix"), read=form_body)


def _deliver(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
    options["headers"] = {"content-type": FORM}
    return path_secret.deliver(body, secret, now, **options)


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider, `classic` or not. Raises: ValueError listing every mistake."""
    given = Options(options, "mollie")
    classic = given.flag("classic")
    given.done()
    return _classic() if classic else _signed()


def _signed() -> Configured:
    return Configured(
        verify=scheme.verify,
        sign=signer(scheme.sign),
        events=_events,
        sender=Sender(
            id_is_signed=True,
            retry_horizon=_HORIZON,
            identity=told_apart_by("$.id"),
            check_secret=scheme.check_secret,
            setup_url="https://my.mollie.com/dashboard/developers/webhooks",
        ),
    )


def _classic() -> Configured:
    return Configured(
        verify=path_secret.verify,
        sign=path_secret.sign,
        events=_classic_events,
        sender=Sender(
            id_is_signed=False,
            body_is_unsigned=True,
            retry_horizon=_HORIZON,
            identity=told_apart_by("receipt"),
            id_period=timedelta(minutes=1),
            unauthenticated=True,
            check_secret=path_secret.check_secret,
            deliver=_deliver,
            sample=lambda event_id, _: urlencode({"id": event_id}).encode(),
            setup_url="https://docs.mollie.com/reference/webhooks",
        ),
    )
