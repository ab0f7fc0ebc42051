"""Onfido signs the body with HMAC-SHA256, in hex, in `X-SHA2-Signature`; the key is the webhook's token.

There is no event id: it is a digest of the action, the object's id and run, its status and its times. The
type is the action, `check.completed`. Retries after 30 s, 2 min, 15 min, 2 h and 10 h.

https://documentation.onfido.com/api/latest#webhooks
"""

from hookonce.providers import kit

_object = "$.payload.object"
events = kit.one_event(
    id=kit.or_body(
        kit.digest(
            kit.field(f"{_object}.id"),
            "$.payload.action",
            kit.field(f"{_object}.status"),
            kit.field(f"{_object}.started_at_iso8601"),
            kit.field(f"{_object}.completed_at_iso8601"),
            *(kit.field(f"{_object}.{name}") for name in ("workflow_run_id", "created_at", "updated_at")),
        )
    ),
    type=kit.or_unknown("$.payload.action"),
    occurred_at=kit.first(
        kit.field(f"{_object}.completed_at_iso8601"), kit.field(f"{_object}.started_at_iso8601")
    ),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-sha2-signature"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.payload.action + $.payload.object.id"),
    setup_url="https://dashboard.onfido.com/api/webhook_management",
)
