"""Recall.ai sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

Workspaces made since November 2025 have one secret and headers that begin with `webhook-`, older ones a secret for
each endpoint and headers that begin with `svix-`; both are taken. The id is that header's. Svix tries for a day or
so. Of real-time endpoints, which Recall.ai sends itself, only what is signed this way is taken.

https://docs.recall.ai/docs/status-change-webhooks-setup-verification
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook", "svix"))
events = kit.one_event(
    id=scheme.id,
    type=kit.or_unknown("$.event"),
    occurred_at=kit.first("$.data.status.created_at", "$.data.data.updated_at"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    setup_url="https://us-west-2.recall.ai/dashboard/webhooks",
)
