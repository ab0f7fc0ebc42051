"""Vanta sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`. The body does not tell the account: give each its own source.

https://developer.vanta.com/docs/webhooks
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("svix", "webhook"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://developer.vanta.com/docs/webhooks"
