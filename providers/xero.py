"""Xero signs the body with HMAC-SHA256, in base64; the key is the webhook key as text, though it looks like base64.

Deliveries are batches without ids: an event is known by tenant, resource, type and time. The type is category
and type, `INVOICE.UPDATE`. Before it delivers, Xero sends empty batches, some of them signed wrongly on
purpose: 200 without a body for the right ones, 401 for all others, whatever is wrong with them. It retries for
about 24 hours, then the webhook is switched off.

https://developer.xero.com/documentation/guides/webhooks/overview/
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Hmac(header="x-xero-signature", encoding="base64")
_EVENTS = "$.events"
_tenant, _resource = kit.field("$.tenantId"), kit.field("$.resourceId")
_done = (kit.field("$.eventType"), kit.field("$.eventDateUtc"))
events = kit.many_events(
    items=_EVENTS,
    id=kit.first(
        kit.join(_tenant, _resource, "$.eventCategory", *_done),
        kit.join(_tenant, _resource, *_done),
        kit.data_digest(),
    ),
    type=kit.or_unknown(kit.join("$.eventCategory", "$.eventType", by="."), "$.eventType"),
    account="$.tenantId",
    occurred_at="$.eventDateUtc",
)
_ACCEPTED = Reply()


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer an empty batch that Xero signed (`events` may be null); None for anything else."""
    data = kit.authentic_body(scheme.authentic, delivery, secrets)
    empty = isinstance(data, dict) and "events" in data and not data["events"]
    return _ACCEPTED if empty else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(1),
    disables_after="a day of failures",
    identity=kit.told_apart_by("$.events[*].eventDateUtc + $.events[*].resourceId + $.events[*].eventType"),
    statuses=dict.fromkeys(kit.FORGED, 401),
    accepted=_ACCEPTED,
    setup_url="https://developer.xero.com/app/manage",
)
