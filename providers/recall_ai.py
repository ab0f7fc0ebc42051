"""Recall.ai sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

Workspaces made since November 2025 have one secret and headers that begin with `webhook-`, older ones a secret for
each endpoint and headers that begin with `svix-`; both are taken. The id is that header's. Svix tries for a day or
so. Of real-time endpoints, which Recall.ai sends itself, only what is signed this way is taken.

https://docs.recall.ai/docs/status-change-webhooks-setup-verification
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook", "svix"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.event"), fixed("unknown")),
    occurred_at=first(field("$.data.status.created_at"), field("$.data.data.updated_at")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://us-west-2.recall.ai/dashboard/webhooks",
)
