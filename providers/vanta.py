"""Vanta sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`. The body does not tell the account: give each its own source.

https://developer.vanta.com/docs/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("svix", "webhook"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://developer.vanta.com/docs/webhooks",
)
