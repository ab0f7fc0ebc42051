"""Render follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `webhook-id`. The body is thin: `$.data.id` is what to ask the API for.

https://render.com/docs/webhooks
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook",))
events = kit.one_event(
    id=scheme.id, type=kit.or_unknown("$.type"), account="$.data.serviceId", occurred_at="$.timestamp"
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    setup_url="https://dashboard.render.com/webhooks",
)
