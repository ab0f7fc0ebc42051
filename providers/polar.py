"""Polar follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The key is the secret's text as it is (`polar_whs_…`), not decoded: the trap that its SDKs hide by encoding it
first. Secrets made since September 2026 (`whsec_…`) are decoded as the standard has it (`webhook/tasks.py` of
polarsource/polar), so one that can be is tried both ways. The id is the header `webhook-id`, the account the
organization.

https://polar.sh/docs/integrate/webhooks/delivery
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, as_whsec, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook",), forms=lambda secret: (as_whsec(secret), secret))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.data.organization_id"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://polar.sh/docs/integrate/webhooks/endpoints",
)
