"""Lithic follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `webhook-id`, the type `$.event_type`. Requests of the authorization stream (ASA) ask for
a decision within seconds: they are not events, keep them on an endpoint of their own.

https://docs.lithic.com/docs/events-api
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook", "svix"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.event_type"), fixed("unknown")),
    occurred_at=first(field("$.created"), field("$.payload.created")),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://docs.lithic.com/docs/events-api"
