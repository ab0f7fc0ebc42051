"""Stytch sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`. The type is `$.event_type`, or `$.action` (`CREATE`, `UPDATE` …) where there is
none. One secret per endpoint; `$.project_id` tells live and test projects apart.

https://stytch.com/docs/guides/webhooks/overview
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("svix", "webhook"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.event_type"), field("$.action"), fixed("unknown")),
    account=field("$.project_id"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://stytch.com/dashboard/webhooks",
)
