"""Mailtrap signs the body with HMAC-SHA256, in hex; the key is the webhook's signing secret.

Up to 500 events come as the list `$.events`, each with its `event_id`. The type is what happened to the mail
(`delivery`, `soft bounce`).

https://docs.mailtrap.io/email-api-smtp/advanced/webhooks
"""

from hookonce.providers import kit

events = kit.many_events(
    items="$.events",
    id=kit.first("$.event_id", kit.data_digest()),
    type=kit.or_unknown("$.event"),
    account=kit.first("$.sending_domain_name", "$.sending_domain_id"),
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="mailtrap-signature"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.events[*].event_id"),
    setup_url="https://mailtrap.io/webhooks",
)
