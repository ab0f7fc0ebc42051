"""Rootly signs `<t><body>` with HMAC-SHA256, in hex: `X-Rootly-Signature: t=…,v1=…`, without a dot in between.

The id is `$.event.id`, the type `$.event.type` (`incident.created`).

https://docs.rootly.com/configuration/webhooks
"""

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

scheme = Hmac(header="x-rootly-signature", key="v1", signed="{timestamp}{body}", timestamp=Timestamp(key="t"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.event.id"), body_digest()),
    type=first(field("$.event.type"), fixed("unknown")),
    occurred_at=field("$.event.issued_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.event.id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://rootly.com/account/webhooks",
)
