"""Etsy follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `webhook-id`, the type `$.event_type`. The body only points to what changed: fetch it from
the API.

https://developers.etsy.com/documentation/essentials/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook", "svix"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.event_type"), field("$.type"), fixed("unknown")),
    account=field("$.shop_id"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://www.etsy.com/developers/your-apps",
)
