"""Heroku signs the body with HMAC-SHA256, in base64; the key is the secret given when the hook was made.

The id is `$.webhook_metadata.event.id`, the event's; `$.webhook_metadata.delivery.id` is another one for each
hook, and `attempt` beside it counts. The type is the entity and the action, `api:release.create`. A hook of
level `sync` is tried ten times in 72 hours, one of level `notify` once. An `Authorization` header is sent
besides if the hook has one, and is not looked at.

https://devcenter.heroku.com/articles/app-webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(header="heroku-webhook-hmac-sha256", encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_entity = first(field("$.webhook_metadata.event.include"), field("$.resource"))
VOLATILE = ("$.webhook_metadata.attempt", "$.webhook_metadata.delivery")
events = one_event(
    id=first(field("$.webhook_metadata.event.id"), body_digest(*VOLATILE)),
    type=first(joined(_entity, field("$.action"), by="."), _entity, fixed("unknown")),
    account=first(field("$.data.app.id"), field("$.data.id")),
    occurred_at=first(field("$.published_at"), field("$.created_at")),
)
RETRY_HORIZON = timedelta(hours=72)
SETUP = "https://devcenter.heroku.com/articles/app-webhooks"
