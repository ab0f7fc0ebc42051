"""Clerk sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`. `$.data.id` is that of the user or organization the event is about, and many
events share it. `$.instance_id` (newer payloads only) tells the Clerk instance.

https://clerk.com/docs/guides/development/webhooks/overview
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
    account=field("$.instance_id"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    retries_on=UNSUCCESSFUL,
    disables_after="five days of failures",
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.clerk.com/last-active?path=webhooks",
)
