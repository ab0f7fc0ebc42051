"""Clerk sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`. `$.data.id` is that of the user or organization the event is about, and many
events share it. `$.instance_id` (newer payloads only) tells the Clerk instance.

https://clerk.com/docs/guides/development/webhooks/overview
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("svix", "webhook"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.instance_id"),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://dashboard.clerk.com/last-active?path=webhooks"
