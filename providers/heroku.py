"""Heroku signs the body with HMAC-SHA256, in base64; the key is the secret given when the hook was made.

The id is `$.webhook_metadata.event.id`, the event's; `$.webhook_metadata.delivery.id` is another one for each
hook, and `attempt` beside it counts. The type is the entity and the action, `api:release.create`. A hook of
level `sync` is tried ten times in 72 hours, one of level `notify` once. An `Authorization` header is sent
besides if the hook has one, and is not looked at.

https://devcenter.heroku.com/articles/app-webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="heroku-webhook-hmac-sha256", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
_entity = first(field("$.webhook_metadata.event.include"), field("$.resource"))
_VOLATILE = ("$.webhook_metadata.attempt", "$.webhook_metadata.delivery")
events = one_event(
    id=first(field("$.webhook_metadata.event.id"), body_digest(*_VOLATILE)),
    type=first(join(_entity, field("$.action"), by="."), _entity, fixed("unknown")),
    account=first(field("$.data.app.id"), field("$.data.id")),
    occurred_at=first(field("$.published_at"), field("$.created_at")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=72),
    identity=told_apart_by("$.webhook_metadata.event.id"),
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://devcenter.heroku.com/articles/app-webhooks",
)
