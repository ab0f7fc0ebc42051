"""RevenueCat brings the authorization header that was configured; on request it signs `<t>.<body>` besides.

`X-RevenueCat-Webhook-Signature` is `t=…,v1=…`, HMAC-SHA256 in hex, the time made anew on each attempt. Either is
enough: configure the header's value, the signing secret, or both. What is not signed says nothing about the body,
so this module counts as unsigned as a whole. The id is `$.event.id`, the same on every attempt; RevenueCat tries
five more times, within three hours. Its TEST is an event too.

https://www.revenuecat.com/docs/integrations/webhooks#webhook-signature-verification-hmac
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, Reason, Rejected, kit

_SIGNATURE = "x-revenuecat-webhook-signature"
scheme = kit.Token(header="authorization")
_signed = kit.Hmac(header=_SIGNATURE, key="v1", signed="{timestamp}.{body}", timestamp=kit.Timestamp(key="t"))
events = kit.one_event(
    id=kit.or_body("$.event.id"),
    type=kit.or_unknown("$.event.type"),
    account="$.event.app_id",
    occurred_at="$.event.event_timestamp_ms",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature or, where that can't be checked, by its header. Raises: Rejected."""
    if _SIGNATURE in delivery.headers:
        try:
            return _signed.verify(delivery, secrets, now)
        except Rejected as error:
            if error.reason is not Reason.BAD_SIGNATURE or "authorization" not in delivery.headers:
                raise
    scheme.verify(delivery, secrets, now)
    return None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.hours(6),
    identity=kit.told_apart_by("$.event.id"),
    mode=kit.mode("$.event.environment", live=("PRODUCTION",)),
    setup_url="https://app.revenuecat.com",
)
