"""MailerLite signs the body with HMAC-SHA256, in hex, in `Signature`.

MailerLite Classic does so in base64, in `X-MailerLite-Signature`, and the key is the API key. There are no ids: an
event is known by its fingerprint, and as not all of them tell when, by the minute of receipt. A webhook may be set to
batches, Classic sends nothing else; each of its `events` is one here, cut out into a body of its own, so `[0]` in a
path is that one. The type is `$.type`, or `$.event` of the older API. Three tries; MailerLite waits for three
seconds.

https://developers.mailerlite.com/docs/webhooks.html
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit

scheme = kit.Hmac(header="signature")
_classic = kit.Hmac(header="x-mailerlite-signature", encoding="base64")
_one = "$.events[0]"
events = kit.split_events(
    pieces=lambda data: kit.cut(data, ("events", None)),
    id=kit.when_matches(kit.field(f"{_one}.timestamp"), ".+", kit.data_digest()),
    undated=kit.data_digest(),
    type=kit.or_unknown("$.type", "$.event", kit.field(f"{_one}.type"), kit.field(f"{_one}.event")),
    account=kit.first("$.account_id", kit.field(f"{_one}.account_id")),
    occurred_at=kit.field(f"{_one}.timestamp"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the scheme of the header that was sent. Raises: Rejected."""
    is_classic = "x-mailerlite-signature" in delivery.headers and "signature" not in delivery.headers
    (_classic if is_classic else scheme).verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.events[*].timestamp", "receipt"),
    id_period=kit.minutes(1),
    setup_url="https://dashboard.mailerlite.com/integrations/webhooks",
)
