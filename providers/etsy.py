"""Etsy follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `webhook-id`, the type `$.event_type`. The body only points to what changed: fetch it from
the API.

https://developers.etsy.com/documentation/essentials/webhooks
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook", "svix"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.event_type"), field("$.type"), fixed("unknown")),
    account=field("$.shop_id"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://www.etsy.com/developers/your-apps"
