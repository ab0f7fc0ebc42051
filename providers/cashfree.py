"""Cashfree signs `<x-webhook-timestamp><body>` with HMAC-SHA256, in base64; the key is the account's client secret.

So it is for Payments, Payouts V2, Secure ID and PPI; Payouts V1 sends forms that are signed otherwise and are not
taken. There is no event id: an event is its body, which has the payment, and when it happened in `$.event_time`;
Cashfree itself numbers them by a hash of the body. The time is in milliseconds. Whether a retry is signed anew is
not said, and Cashfree's SDKs don't look at the time, so it may be a day old.

https://www.cashfree.com/docs/api-reference/webhooks/payloads-and-signatures
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-webhook-signature",
    encoding="base64",
    signed="{timestamp}{body}",
    timestamp=Timestamp(header="x-webhook-timestamp", unit="ms", tolerance=timedelta(days=1)),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=body_digest(),
    type=first(field("$.type"), field("$.event_type"), fixed("unknown")),
    occurred_at=field("$.event_time"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="the account chooses up to ten retries and their pauses",
    identity=told_apart_by(
        "$.event_time",
        "body",
        because="the body names the payment and its state, and Cashfree's own idempotency key is the body's hash",
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://merchant.cashfree.com/merchants/pg/developers/webhooks",
)
