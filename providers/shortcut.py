"""Shortcut (once Clubhouse) signs the body with HMAC-SHA256, in hex, if its webhook has a secret.

The id is `$.id`; the type is what was done to what, of the first of the actions (`story.update`).

https://developer.shortcut.com/api/webhook/v1
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown(kit.join("$.actions[0].entity_type", "$.actions[0].action", by=".")),
    account="$.member_id",
    occurred_at="$.changed_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="payload-signature"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.id"),
    setup_url="https://app.shortcut.com/settings/integrations/outgoing-webhook",
)
