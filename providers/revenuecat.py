"""RevenueCat brings the authorization header that was configured; on request it signs `<t>.<body>` besides.

`X-RevenueCat-Webhook-Signature` is `t=…,v1=…`, HMAC-SHA256 in hex, the time made anew on each attempt. Either is
enough: configure the header's value, the signing secret, or both. What is not signed says nothing about the body,
so this module counts as unsigned as a whole. The id is `$.event.id`, the same on every attempt; RevenueCat tries
five more times, within three hours. Its TEST is an event too.

https://www.revenuecat.com/docs/integrations/webhooks#webhook-signature-verification-hmac
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    Token,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

_SIGNATURE = "x-revenuecat-webhook-signature"
scheme = Token(header="authorization")
_signed = Hmac(header=_SIGNATURE, key="v1", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.event.id"), body_digest()),
    type=first(field("$.event.type"), fixed("unknown")),
    account=field("$.event.app_id"),
    occurred_at=field("$.event.event_timestamp_ms"),
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


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(hours=6),
    identity=told_apart_by("$.event.id"),
    check_secret=scheme.check_secret,
    setup_url="https://app.revenuecat.com",
)
