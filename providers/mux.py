"""Mux signs `<t>.<body>` with HMAC-SHA256, in hex: `Mux-Signature: t=…,v1=…`, several `v1` while rotating.

The id is `$.id`, the same on every retry; `$.attempts` in the body grows. The account is the environment.
Retries go on for 24 hours.

https://www.mux.com/docs/core/verify-webhook-signatures
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="mux-signature", key="v1", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
VOLATILE = ("$.attempts",)
events = one_event(
    id=first(field("$.id"), body_digest(*VOLATILE)),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.environment.id"),
    occurred_at=field("$.created_at"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://dashboard.mux.com/settings/webhooks"
