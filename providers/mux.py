"""Mux signs `<t>.<body>` with HMAC-SHA256, in hex: `Mux-Signature: t=…,v1=…`, several `v1` while rotating.

The id is `$.id`, the same on every retry; `$.attempts` in the body grows. The account is the environment.
Retries go on for 24 hours.

https://www.mux.com/docs/core/verify-webhook-signatures
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

scheme = Hmac(header="mux-signature", key="v1", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
verify = scheme.verify
sign = signer(scheme.sign)
_VOLATILE = ("$.attempts",)
events = one_event(
    id=first(field("$.id"), body_digest(*_VOLATILE)),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.environment.id"),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.id"),
    tolerance=scheme.tolerance,
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.mux.com/settings/webhooks",
)
