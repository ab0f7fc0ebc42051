"""Etsy follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `webhook-id`, the type `$.event_type`. The body only points to what changed: fetch it from
the API. After a failure it waits for 5 s, 5 and 30 minutes, 2, 5, 10 and again 10 hours, as an AsyncAPI description by
others quotes the page below.

https://developers.etsy.com/documentation/essentials/webhooks
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook", "svix"))
events = kit.one_event(id=scheme.id, type=kit.or_unknown("$.event_type", "$.type"), account="$.shop_id")
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.hours(28),
    setup_url="https://www.etsy.com/developers/your-apps",
)
