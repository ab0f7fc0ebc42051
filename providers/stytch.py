"""Stytch sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`. The type is `$.event_type`, or `$.action` (`CREATE`, `UPDATE` …) where there is
none. One secret per endpoint; `$.project_id` tells live and test projects apart.

https://stytch.com/docs/guides/webhooks/overview
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("svix", "webhook"))
events = kit.one_event(
    id=scheme.id,
    type=kit.or_unknown("$.event_type", "$.action"),
    account="$.project_id",
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    setup_url="https://stytch.com/dashboard/webhooks",
)
