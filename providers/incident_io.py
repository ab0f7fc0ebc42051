"""incident.io follows Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The id is the header `webhook-id`, the type `$.event_type`. What it is about stands under a key that is named
like the type. The body does not tell the organization: give each its own source.

https://docs.incident.io/integrations/webhooks
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook", "svix"))
events = kit.one_event(id=scheme.id, type=kit.or_unknown("$.event_type"))
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    setup_url="https://app.incident.io/~/settings/webhooks",
)
