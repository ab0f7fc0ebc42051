"""Render follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `webhook-id`. The body is thin: `$.data.id` is what to ask the API for.

https://render.com/docs/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook",))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.data.serviceId"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.render.com/webhooks",
)
