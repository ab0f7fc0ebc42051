"""incident.io follows Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The id is the header `webhook-id`, the type `$.event_type`. What it is about stands under a key that is named
like the type. The body does not tell the organization: give each its own source.

https://docs.incident.io/integrations/webhooks
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook", "svix"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.event_type"), fixed("unknown")),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://app.incident.io/~/settings/webhooks"
