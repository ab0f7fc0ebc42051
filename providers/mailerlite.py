"""MailerLite signs the body with HMAC-SHA256, in hex, in `Signature`.

MailerLite Classic does so in base64, in `X-MailerLite-Signature`, and the key is the API key. There are no ids: an
event is known by its fingerprint. A webhook may be set to batches, Classic sends nothing else; each of its `events`
is one here. The type is `$.type`, or `$.event` of the older API. Three tries; MailerLite waits for three seconds.

https://developers.mailerlite.com/docs/webhooks.html
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from providers import Delivery
from providers.kit import Hmac, cut, data_digest, field, first, fixed, signer, split_events

scheme = Hmac(header="signature")
_classic = Hmac(header="x-mailerlite-signature", encoding="base64")
sign, CHECK = signer(scheme.sign), scheme.check_secret
_one = "$.events[0]"
events = split_events(
    pieces=lambda data: cut(data, ("events", None)),
    id=data_digest(),
    type=first(
        field("$.type"), field("$.event"), field(f"{_one}.type"), field(f"{_one}.event"), fixed("unknown")
    ),
    account=first(field("$.account_id"), field(f"{_one}.account_id")),
    occurred_at=field(f"{_one}.timestamp"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://dashboard.mailerlite.com/integrations/webhooks"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the scheme of the header that was sent. Raises: Rejected."""
    is_classic = "x-mailerlite-signature" in delivery.headers and "signature" not in delivery.headers
    (_classic if is_classic else scheme).verify(delivery, secrets, now)
