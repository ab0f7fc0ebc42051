"""Dub signs the body with HMAC-SHA256, in hex.

The id is `$.id`, the type `$.event`.

https://dub.co/docs/concepts/webhooks/introduction
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

scheme = Hmac(header="dub-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    occurred_at=field("$.createdAt"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://app.dub.co/settings/webhooks",
)
