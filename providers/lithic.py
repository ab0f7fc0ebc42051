"""Lithic follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `webhook-id`, the type `$.event_type`. Requests of the authorization stream (ASA) ask for
a decision within seconds: they are not events, keep them on an endpoint of their own.

https://docs.lithic.com/docs/events-api
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook", "svix"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.event_type"), fixed("unknown")),
    occurred_at=first(field("$.created"), field("$.payload.created")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://docs.lithic.com/docs/events-api",
)
