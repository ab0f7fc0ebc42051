"""Brex sends by Svix under unbranded names: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The secret is base64 without the `whsec_` in front; either spelling is taken. While a secret is rolled the API
lists several: configure all of them. The id is the header `webhook-id`.

https://developer.brex.com/docs/webhooks/
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook", "svix"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.event_type"), field("$.type"), fixed("unknown")),
    account=field("$.company_id"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://developer.brex.com/docs/webhooks/"
