"""Sanity signs `<ms>.<body>` with HMAC-SHA256: `sanity-webhook-signature: t=<ms>,v1=<base64url>`, not padded.

The id is the header `idempotency-key`, the same on every retry and not signed; without it the body is known by
its fingerprint. The body is whatever the webhook's projection makes; the type is the operation and the
document's type if that is projected, `update.post`. The signed time is not checked, as in Sanity's library:
Sanity may send an old signature again, for half an hour. A webhook may be set to any HTTP method; the body is the same.

https://www.sanity.io/docs/content-lake/webhook-best-practices
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, header, joined, one_event, signer

scheme = Hmac(
    header="sanity-webhook-signature",
    key="v1",
    encoding="base64url",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t", unit="ms", tolerance=None),
)
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, event_id="idempotency-key", type="sanity-operation", default_type="update")
_operation = header("sanity-operation")
events = one_event(
    id=first(header("idempotency-key"), body_digest()),
    type=first(joined(_operation, field("$._type"), by="."), _operation, field("$._type"), fixed("unknown")),
    account=header("sanity-project-id"),
    occurred_at=first(header("sanity-transaction-time"), field("$._updatedAt")),
)
ID_IS_SIGNED = False
METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET")
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://www.sanity.io/manage"
