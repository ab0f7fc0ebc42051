"""Cashfree signs `<x-webhook-timestamp><body>` with HMAC-SHA256, in base64; the key is the account's client secret.

So it is for Payments, Payouts V2, Secure ID and PPI; Payouts V1 sends forms that are signed otherwise and are not
taken. There is no event id: an event is its body, which has the payment, and when it happened in `$.event_time`;
Cashfree itself numbers them by a hash of the body. The time is in milliseconds. Whether a retry is signed anew is
not said, and Cashfree's SDKs don't look at the time, so it may be a day old.

https://www.cashfree.com/docs/api-reference/webhooks/payloads-and-signatures
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.body_digest(), type=kit.or_unknown("$.type", "$.event_type"), occurred_at="$.event_time"
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="x-webhook-signature",
        encoding="base64",
        signed="{timestamp}{body}",
        timestamp=kit.Timestamp(header="x-webhook-timestamp", unit="ms", tolerance=kit.days(1)),
    ),
    id_is_signed=True,
    retry_horizon="the account chooses up to ten retries and their pauses",
    identity=kit.told_apart_by(
        "$.event_time",
        "body",
        because="the body names the payment and its state, and Cashfree's own idempotency key is the body's hash",
    ),
    setup_url="https://merchant.cashfree.com/merchants/pg/developers/webhooks",
)
