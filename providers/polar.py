"""Polar follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The key is the secret's text as it is (`polar_whs_…`), not decoded: the trap that its SDKs hide by encoding it
first. Secrets made since September 2026 (`whsec_…`) are decoded as the standard has it (`webhook/tasks.py` of
polarsource/polar), so one that can be is tried both ways. The id is the header `webhook-id`, the account the
organization.

https://polar.sh/docs/integrate/webhooks/delivery
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer
from providers.kit.keys import as_whsec

scheme = StandardWebhooks(vendors=("webhook",), forms=lambda secret: (as_whsec(secret), secret))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.data.organization_id"),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://polar.sh/docs/integrate/webhooks/endpoints"
