"""Resend sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`; `$.data.email_id` is shared by all events of one email. Each endpoint has a
secret of its own.

https://resend.com/docs/dashboard/webhooks/verify-webhooks-requests
"""

from datetime import timedelta

from hookonce.providers.kit import (
    UNSUCCESSFUL,
    Sender,
    StandardWebhooks,
    field,
    first,
    fixed,
    one_event,
    signer,
)

scheme = StandardWebhooks(vendors=("svix", "webhook"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    retries_on=UNSUCCESSFUL,
    disables_after="five days of failures",
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://resend.com/webhooks",
)
