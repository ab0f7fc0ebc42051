"""Razorpay signs the body with HMAC-SHA256, in hex; the key is the webhook's secret, not the API's.

The id is `X-Razorpay-Event-Id`, the same on every retry and not signed. The type is `$.event`, the account
`$.account_id`. Events may come out of order. Retries go on for 24 hours, then the webhook is switched off.

https://razorpay.com/docs/webhooks/validate-test/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    UNSUCCESSFUL,
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-razorpay-signature")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-razorpay-event-id")
events = one_event(
    id=first(header("x-razorpay-event-id"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$.account_id"),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=1),
    retries_on=UNSUCCESSFUL,
    disables_after="a day of failures",
    identity=told_apart_by("header x-razorpay-event-id"),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.razorpay.com/app/webhooks",
)
