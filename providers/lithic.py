"""Lithic follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `webhook-id`, the type `$.event_type`. Requests of the authorization stream (ASA) ask for
a decision within seconds: they are not events, keep them on an endpoint of their own.

https://docs.lithic.com/docs/events-api
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook", "svix"))
events = kit.one_event(
    id=scheme.id, type=kit.or_unknown("$.event_type"), occurred_at=kit.first("$.created", "$.payload.created")
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    setup_url="https://docs.lithic.com/docs/events-api",
)
