"""Sanity signs `<ms>.<body>` with HMAC-SHA256: `sanity-webhook-signature: t=<ms>,v1=<base64url>`, not padded.

The id is the header `idempotency-key`, the same on every retry and not signed; without it the body is known by its
fingerprint. The body is whatever the webhook's projection makes; the type is the operation and the document's type if
that is projected, `update.post`. The signed time is not checked, as in Sanity's library: Sanity may send an old
signature again: twice, after 30 seconds each, and until April 2026 for half an hour. A webhook may be set to any HTTP
method; the body is the same.

https://www.sanity.io/docs/content-lake/webhook-best-practices
"""

from hookonce.providers import kit

scheme = kit.Hmac(
    header="sanity-webhook-signature",
    key="v1",
    encoding="base64url",
    signed="{timestamp}.{body}",
    timestamp=kit.Timestamp(key="t", unit="ms", tolerance=None),
)
sign = kit.signer(scheme.sign, event_id="idempotency-key", type="sanity-operation", default_type="update")
_operation = kit.header("sanity-operation")
events = kit.one_event(
    id=kit.or_body("header idempotency-key"),
    type=kit.or_unknown(kit.join(_operation, "$._type", by="."), _operation, "$._type"),
    account="header sanity-project-id",
    occurred_at=kit.first("header sanity-transaction-time", "$._updatedAt"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="the body is what the webhook's projection makes, which may leave out all that changes",
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by(
        "header idempotency-key",
        "body",
        because="every delivery has the header; the page on signatures leaves it out",
    ),
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    subject=kit.about(entity=("header sanity-dataset", "$._id"), version="$._updatedAt"),
    setup_url="https://www.sanity.io/manage",
)
