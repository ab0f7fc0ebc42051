"""Checkout.com signs the body with HMAC-SHA256, in hex, in `Cko-Signature`.

The key is the workflow's signature key; on the older platform it may be the account's secret key. An
`Authorization` header with a fixed value may be set besides, and is never looked at. The id is `$.id`
(`evt_…`). There are eight retries within 30 hours.

https://www.checkout.com/docs/developer-resources/webhooks/set-up-your-webhook-receiver
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

scheme = Hmac(header="cko-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=first(field("$.data.processing_channel_id"), field("$.data.entity_id")),
    occurred_at=first(field("$.created_on"), field("$.timestamp")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.checkout.com/developers/webhooks",
)
