"""Replicate follows Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The id is the header `webhook-id`. The body is the prediction itself: its `$.id` comes in every event of its
life, so the type is its `$.status` (`starting`, `processing`, `succeeded` …). One secret per account, fetched
by API. Only the end of a prediction is sent again after a failure.

https://replicate.com/docs/topics/webhooks/verify-webhook
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook",))
events = kit.one_event(
    id=scheme.id,
    type=kit.or_unknown("$.status"),
    occurred_at=kit.first("$.completed_at", "$.started_at", "$.created_at"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    setup_url="https://replicate.com/docs/topics/webhooks",
)
