"""Heroku signs the body with HMAC-SHA256, in base64; the key is the secret given when the hook was made.

The id is `$.webhook_metadata.event.id`, the event's; `$.webhook_metadata.delivery.id` is another one for each hook,
and `attempt` beside it counts the attempts. The type is the entity and the action, `api:release.create`. A hook of
level `sync` is tried ten times in 72 hours, one of level `notify` once. An `Authorization` header is sent besides if
the hook has one, and is not looked at.

https://devcenter.heroku.com/articles/app-webhooks
"""

from hookonce.providers import kit

_entity = kit.first("$.webhook_metadata.event.include", "$.resource")
_VOLATILE = ("$.webhook_metadata.attempt", "$.webhook_metadata.delivery")
events = kit.one_event(
    id=kit.or_body("$.webhook_metadata.event.id", without=_VOLATILE),
    type=kit.or_unknown(kit.join(_entity, "$.action", by="."), _entity),
    account=kit.first("$.data.app.id", "$.data.id"),
    occurred_at=kit.first("$.published_at", "$.created_at"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="heroku-webhook-hmac-sha256", encoding="base64"),
    id_is_signed=True,
    retry_horizon=kit.hours(72),
    identity=kit.told_apart_by("$.webhook_metadata.event.id"),
    volatile=_VOLATILE,
    setup_url="https://devcenter.heroku.com/articles/app-webhooks",
)
