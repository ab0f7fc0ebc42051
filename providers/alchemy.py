"""Alchemy signs the body with HMAC-SHA256, in hex; the signing key (`whsec_…`) is used whole, as it is.

The id is `$.id` (whevt_…), the same on every attempt; the type is `$.type` (ADDRESS_ACTIVITY). One delivery holds all
that a block had for the webhook. Alchemy tries again for up to an hour.

https://www.alchemy.com/docs/reference/notify-api-quickstart
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

scheme = Hmac(header="x-alchemy-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.webhookId"),
    occurred_at=field("$.createdAt"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.alchemy.com/webhooks",
)
