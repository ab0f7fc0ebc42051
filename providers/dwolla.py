"""Dwolla signs the body with HMAC-SHA256, in hex; the key is the secret given when the subscription was made.

The id is `$.id`, the type `$.topic`. There are eight retries within 72 hours.

https://developers.dwolla.com/docs/working-with-webhooks
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

scheme = Hmac(header="x-request-signature-sha-256")
verify = scheme.verify
sign = signer(scheme.sign, type="x-dwolla-topic")
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.topic"), fixed("unknown")),
    account=field("$._links.account.href"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=4),
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.dwolla.com/applications",
)
