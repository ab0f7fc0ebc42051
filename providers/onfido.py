"""Onfido signs the body with HMAC-SHA256, in hex, in `X-SHA2-Signature`; the key is the webhook's token.

There is no event id. It is a digest of the action, the object and its times, and of the resource: tasks of two
workflow runs may have one id. What has no time (`watchlist_monitor.matches_updated`) is known by its body and the time
of receipt. The type is the action, `check.completed`. Retries after 30 s, 2 min, 15 min, 2 h and 10 h.

https://documentation.onfido.com/api/latest#webhooks
"""

from hookonce.providers import kit

_started, _completed = "$.payload.object.started_at_iso8601", "$.payload.object.completed_at_iso8601"
_created, _updated = "$.payload.resource.created_at", "$.payload.resource.updated_at"
_object = (
    *("$.payload.object.id", "$.payload.action", "$.payload.object.status", _started, _completed),
    *(f"$.payload.object.{name}" for name in ("workflow_run_id", "created_at", "updated_at")),
)
_resource = (
    *(f"$.payload.resource.{name}" for name in ("id", "workflow_run_id", "status")),
    _created,
    _updated,
)
_time = kit.first(_completed, _started, _updated, _created)
events = kit.one_event(
    id=kit.when_matches(_time, ".+", kit.digest(*_object, *_resource)),
    undated=kit.body_digest(),
    type=kit.or_unknown("$.payload.action"),
    occurred_at=_time,
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-sha2-signature"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.payload.action + $.payload.object.id + $.payload.object.completed_at_iso8601",
        "$.payload.action + $.payload.object.id + $.payload.resource.updated_at",
        "receipt",
    ),
    id_period=kit.days(1),  # its last retry comes after twelve hours
    setup_url="https://dashboard.onfido.com/api/webhook_management",
)
