"""Coinbase Commerce signs the body with HMAC-SHA256, in hex.

The id is `$.event.id`; `$.id` is that of the delivery, and with `$.attempt_number` and `$.scheduled_for` it is
new for each attempt. Retries go on for three days.

https://docs.cdp.coinbase.com/commerce/docs/webhooks-security
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-cc-webhook-signature")
verify = scheme.verify
sign = signer(scheme.sign)
_VOLATILE = ("$.id", "$.attempt_number", "$.scheduled_for")
events = one_event(
    id=first(field("$.event.id"), body_digest(*_VOLATILE)),
    type=first(field("$.event.type"), fixed("unknown")),
    occurred_at=field("$.event.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=4),
    identity=told_apart_by("$.event.id"),
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://beta.commerce.coinbase.com/settings/notifications",
)
