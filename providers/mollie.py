"""Mollie's next-generation webhooks sign the body with HMAC-SHA256, hex behind `sha256=`.

For 24 hours after a rotation the header is sent twice, once for each secret. The id is `$.id`, the event's.
Ten tries in 26 hours, after which the webhook is blocked.

Classic webhooks are a form `id=tr_…` that says which payment, order or subscription to ask the API for, and prove
nothing. The option `classic = true` takes these instead, at a URL that ends with the secret. The same form comes with
each change, so the minute of receipt is part of the event's id; the type is what the id is of, `payment`.

https://docs.mollie.com/reference/webhooks-new
"""

from datetime import datetime
from typing import Final, Unpack
from urllib.parse import urlencode

from hookonce.providers import Delivery, kit

scheme = kit.Hmac(header="x-mollie-signature", prefix="sha256=", separator=",")
_events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.type"),
    account="$.organizationId",
    occurred_at="$.createdAt",
)
_HORIZON: Final = kit.days(2)
_KINDS: Final = {
    "tr": "payment",
    "ord": "order",
    "sub": "subscription",
    "pl": "payment-link",
    "stl": "settlement",
}


def _kind(view: kit.EventView) -> object:
    """Return the kind of object that an id is of, by its prefix."""
    number = str(kit.field("$.id").get(view))
    return _KINDS.get(number.partition("_")[0], "unknown")


_classic_events = kit.one_event(id="$.id", type=kit.Extractor(_kind, "the id's prefix"), read=kit.form_body)


def _deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    options["headers"] = {"content-type": kit.FORM}
    return kit.path_secret.deliver(body, secret, now, **options)


@kit.with_options("mollie")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider, `classic` or not."""
    classic = given.flag("classic")
    return _classic() if classic else _signed()


def _signed() -> kit.Configured:
    return kit.Configured(
        events=_events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=True,
            retry_horizon=_HORIZON,
            identity=kit.told_apart_by("$.id"),
            setup_url="https://my.mollie.com/dashboard/developers/webhooks",
        ),
    )


def _classic() -> kit.Configured:
    return kit.Configured(
        verify=kit.path_secret.verify,
        sign=kit.path_secret.sign,
        events=_classic_events,
        sender=kit.Sender(
            id_is_signed=False,
            body_is_unsigned=True,
            retry_horizon=_HORIZON,
            identity=kit.told_apart_by("receipt"),
            id_period=kit.minutes(1),
            unauthenticated=True,
            check_secret=kit.path_secret.check_secret,
            deliver=_deliver,
            sample=lambda event_id, _: urlencode({"id": event_id}).encode(),
            setup_url="https://docs.mollie.com/reference/webhooks",
        ),
    )
