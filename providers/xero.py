"""Xero signs the body with HMAC-SHA256, in base64; the key is the webhook key as text, though it looks like base64.

Deliveries are batches without ids: an event is known by tenant, resource, type and time. The type is category
and type, `INVOICE.UPDATE`. Before it delivers, Xero sends empty batches, some of them signed wrongly on
purpose: 200 without a body for the right ones, 401 for all others, whatever is wrong with them. It retries for
about 24 hours, then the webhook is switched off.

https://developer.xero.com/documentation/guides/webhooks/overview/
"""

from collections.abc import Sequence
from datetime import timedelta

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    FORGED,
    Hmac,
    Sender,
    authentic_body,
    data_digest,
    field,
    first,
    fixed,
    join,
    many_events,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-xero-signature", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
_EVENTS = "$.events"
_tenant, _resource = field("$.tenantId"), field("$.resourceId")
_done = (field("$.eventType"), field("$.eventDateUtc"))
events = many_events(
    items=_EVENTS,
    id=first(
        join(_tenant, _resource, field("$.eventCategory"), *_done),
        join(_tenant, _resource, *_done),
        data_digest(),
    ),
    former=(join(_tenant, _resource, *_done),),
    type=first(
        join(field("$.eventCategory"), field("$.eventType"), by="."), field("$.eventType"), fixed("unknown")
    ),
    account=field("$.tenantId"),
    occurred_at=field("$.eventDateUtc"),
)
_ACCEPTED = Reply()


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer an empty batch that Xero signed (`events` may be null); None for anything else."""
    data = authentic_body(scheme.authentic, delivery, secrets)
    empty = isinstance(data, dict) and "events" in data and not data["events"]
    return _ACCEPTED if empty else None


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    disables_after="a day of failures",
    identity=told_apart_by("$.events[*].eventDateUtc + $.events[*].resourceId + $.events[*].eventType"),
    statuses=dict.fromkeys(FORGED, 401),
    accepted=_ACCEPTED,
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://developer.xero.com/app/manage",
)
