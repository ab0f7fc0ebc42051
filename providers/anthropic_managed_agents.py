"""Claude Managed Agents follow Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The id is the header `webhook-id`. `$.type` is always `event`; what happened is `$.data.type`. The body is
thin: ask the API for the session that `$.data.id` names.

https://platform.claude.com/docs/en/managed-agents/webhooks
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook",))
events = kit.one_event(
    id=scheme.id,
    type=kit.or_unknown("$.data.type", "$.type"),
    account=kit.first("$.data.workspace_id", "$.data.organization_id"),
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    subject=kit.about(entity=("$.data.id",), version="$.created_at"),
    setup_url="https://platform.claude.com/docs/en/managed-agents/webhooks",
)
