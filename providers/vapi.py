"""Vapi brings the secret of its server URL in `X-Vapi-Secret`, and signs nothing.

A credential of the kind "Bearer Token" is `in = "bearer"`; one of the kind "HMAC" is whatever its user made of it,
for `provider = "hmac"`. There is no id: a message is its body, with `$.message.timestamp`. Vapi waits for what some
types ask (`assistant-request`, `tool-calls`, `transfer-destination-request`, `knowledge-base-request`), and an
inbox can't answer them: have those sent to your own server.

https://docs.vapi.ai/server-url/server-authentication
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.body_digest(),
    type=kit.or_unknown("$.message.type"),
    account="$.message.call.orgId",
    occurred_at="$.message.timestamp",
)
configure = kit.token_sender(
    "vapi",
    "header:X-Vapi-Secret",
    events=events,
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon="unknown (no vendor documentation found)",
        identity=kit.told_apart_by(
            "$.message.timestamp",
            "body",
            because="most messages have their time; others tell the state of a call, each once",
        ),
        setup_url="https://dashboard.vapi.ai/settings/integrations",
    ),
)
