"""Resend sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`; `$.data.email_id` is shared by all events of one email. Each endpoint has a
secret of its own.

https://resend.com/docs/dashboard/webhooks/verify-webhooks-requests
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("svix", "webhook"))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.created_at"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://resend.com/webhooks"
