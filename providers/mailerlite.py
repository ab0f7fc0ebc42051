"""MailerLite signs the body with HMAC-SHA256, in hex, in `Signature`.

MailerLite Classic does so in base64, in `X-MailerLite-Signature`, and the key is the API key. There are no ids: an
event is known by its fingerprint, and as not all of them tell when, by the minute of receipt. A webhook may be set to
batches, Classic sends nothing else; each of its `events` is one here. The type is `$.type`, or `$.event` of the older
API. Three tries; MailerLite waits for three seconds.

https://developers.mailerlite.com/docs/webhooks.html
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    cut,
    data_digest,
    field,
    first,
    fixed,
    signer,
    split_events,
    told_apart_by,
    when_matches,
)

scheme = Hmac(header="signature")
_classic = Hmac(header="x-mailerlite-signature", encoding="base64")
sign = signer(scheme.sign)
_one = "$.events[0]"
events = split_events(
    pieces=lambda data: cut(data, ("events", None)),
    id=when_matches(field(f"{_one}.timestamp"), ".+", data_digest()),
    undated=data_digest(),
    type=first(
        field("$.type"), field("$.event"), field(f"{_one}.type"), field(f"{_one}.event"), fixed("unknown")
    ),
    account=first(field("$.account_id"), field(f"{_one}.account_id")),
    occurred_at=field(f"{_one}.timestamp"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the scheme of the header that was sent. Raises: Rejected."""
    is_classic = "x-mailerlite-signature" in delivery.headers and "signature" not in delivery.headers
    (_classic if is_classic else scheme).verify(delivery, secrets, now)


sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.events[*].timestamp", "receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.mailerlite.com/integrations/webhooks",
)
