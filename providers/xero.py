"""Xero signs the body with HMAC-SHA256, in base64; the key is the webhook key as text, though it looks like base64.

Deliveries are batches without ids: an event is known by tenant, resource, type and time. The type is category
and type, `INVOICE.UPDATE`. Before it delivers, Xero sends empty batches, some of them signed wrongly on
purpose: 200 without a body for the right ones, 401 for all others, whatever is wrong with them. It retries for
about 24 hours, then the webhook is switched off.

https://developer.xero.com/documentation/guides/webhooks/overview/
"""

from collections.abc import Sequence
from datetime import timedelta

from providers import Delivery, Reply
from providers.kit import FORGED, Hmac, data_digest, field, first, fixed, joined, many_events, signer
from providers.kit.probing import said_by_sender

scheme = Hmac(header="x-xero-signature", encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_EVENTS = "$.events"
events = many_events(
    items=_EVENTS,
    id=first(
        joined(field("$.tenantId"), field("$.resourceId"), field("$.eventType"), field("$.eventDateUtc")),
        data_digest(),
    ),
    type=first(
        joined(field("$.eventCategory"), field("$.eventType"), by="."), field("$.eventType"), fixed("unknown")
    ),
    account=field("$.tenantId"),
    occurred_at=field("$.eventDateUtc"),
)
ACCEPTED = Reply()
STATUSES = dict.fromkeys(FORGED, 401)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://developer.xero.com/app/manage"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer an empty batch that Xero signed (`events` may be null); None for anything else."""
    data = said_by_sender(scheme.authentic, delivery, secrets)
    empty = isinstance(data, dict) and "events" in data and not data["events"]
    return ACCEPTED if empty else None
