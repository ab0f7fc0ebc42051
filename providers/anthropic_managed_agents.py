"""Claude Managed Agents follow Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The id is the header `webhook-id`. `$.type` is always `event`; what happened is `$.data.type`. The body is
thin: ask the API for the session that `$.data.id` names.

https://platform.claude.com/docs/en/managed-agents/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook",))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.data.type"), field("$.type"), fixed("unknown")),
    account=first(field("$.data.workspace_id"), field("$.data.organization_id")),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://platform.claude.com/docs/en/managed-agents/webhooks",
)
