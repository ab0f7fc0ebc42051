"""Sanity signs `<ms>.<body>` with HMAC-SHA256: `sanity-webhook-signature: t=<ms>,v1=<base64url>`, not padded.

The id is the header `idempotency-key`, the same on every retry and not signed; without it the body is known by its
fingerprint. The body is whatever the webhook's projection makes; the type is the operation and the document's type if
that is projected, `update.post`. The signed time is not checked, as in Sanity's library: Sanity may send an old
signature again, for half an hour. A webhook may be set to any HTTP method; the body is the same.

https://www.sanity.io/docs/content-lake/webhook-best-practices
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
    header,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="sanity-webhook-signature",
    key="v1",
    encoding="base64url",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t", unit="ms", tolerance=None),
)
verify = scheme.verify
sign = signer(scheme.sign, event_id="idempotency-key", type="sanity-operation", default_type="update")
_operation = header("sanity-operation")
events = one_event(
    id=first(header("idempotency-key"), body_digest()),
    type=first(join(_operation, field("$._type"), by="."), _operation, field("$._type"), fixed("unknown")),
    account=header("sanity-project-id"),
    occurred_at=first(header("sanity-transaction-time"), field("$._updatedAt")),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by(
        "header idempotency-key",
        "body",
        because="every delivery has the header; the page on signatures leaves it out",
    ),
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    check_secret=scheme.check_secret,
    setup_url="https://www.sanity.io/manage",
)
