"""Replicate follows Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The id is the header `webhook-id`. The body is the prediction itself: its `$.id` comes in every event of its
life, so the type is its `$.status` (`starting`, `processing`, `succeeded` …). One secret per account, fetched
by API. Only the end of a prediction is sent again after a failure.

https://replicate.com/docs/topics/webhooks/verify-webhook
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook",))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.status"), fixed("unknown")),
    occurred_at=first(field("$.completed_at"), field("$.started_at"), field("$.created_at")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://replicate.com/docs/topics/webhooks",
)
