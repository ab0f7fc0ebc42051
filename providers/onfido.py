"""Onfido signs the body with HMAC-SHA256, in hex, in `X-SHA2-Signature`; the key is the webhook's token.

There is no event id: it is a digest of the action, the object's id and run, its status and its times. The
type is the action, `check.completed`. Retries after 30 s, 2 min, 15 min, 2 h and 10 h.

https://documentation.onfido.com/api/latest#webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-sha2-signature")
verify = scheme.verify
sign = signer(scheme.sign)
_object = "$.payload.object"
events = one_event(
    id=first(
        digest(
            field(f"{_object}.id"),
            field("$.payload.action"),
            field(f"{_object}.status"),
            field(f"{_object}.started_at_iso8601"),
            field(f"{_object}.completed_at_iso8601"),
            *(field(f"{_object}.{name}") for name in ("workflow_run_id", "created_at", "updated_at")),
        ),
        body_digest(),
    ),
    type=first(field("$.payload.action"), fixed("unknown")),
    occurred_at=first(field(f"{_object}.completed_at_iso8601"), field(f"{_object}.started_at_iso8601")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.payload.action + $.payload.object.id"),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.onfido.com/api/webhook_management",
)
