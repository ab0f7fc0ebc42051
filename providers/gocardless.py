"""GoCardless signs the body with HMAC-SHA256, in hex, in `Webhook-Signature`.

Deliveries are batches of up to 250 events, each with an id that stays the same; `$.meta.webhook_id` is the
delivery's. The type is the resource and the action, `payments.confirmed`, the account the organisation. Eight
retries at growing intervals.

https://developer.gocardless.com/getting-started/staying-up-to-date-with-webhooks
"""

from hookonce.providers import kit

events = kit.many_events(
    items="$.events",
    id="$.id",
    type=kit.first(kit.join("$.resource_type", "$.action", by="."), "$.resource_type"),
    account="$.links.organisation",
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="webhook-signature"),
    id_is_signed=True,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.events[*].id"),
    setup_url="https://manage.gocardless.com/developers",
)
