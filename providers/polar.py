"""Polar follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The key is the secret's text as it is (`polar_whs_…`), not decoded: the trap that its SDKs hide by encoding it
first. Secrets made since September 2026 (`whsec_…`) are decoded as the standard has it (`webhook/tasks.py` of
polarsource/polar), so one that can be is tried both ways. The id is the header `webhook-id`, the account the
organization.

https://polar.sh/docs/integrate/webhooks/delivery
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook",), forms=lambda secret: (kit.as_whsec(secret), secret))
events = kit.one_event(
    id=scheme.id, type=kit.or_unknown("$.type"), account="$.data.organization_id", occurred_at="$.timestamp"
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    subject=kit.about(entity=("$.data.id",), version="$.timestamp"),
    setup_url="https://polar.sh/docs/integrate/webhooks/endpoints",
)
