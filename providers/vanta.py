"""Vanta sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`, the type `$.type` (`v1.vendor.decision.created`). Vanta's reference shows bodies without
the envelope that has it: see what your first delivery says. The body does not tell the account: give each its own
source. Seven retries within three and a half days.

https://developer.vanta.com/docs/webhooks
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("svix", "webhook"))
events = kit.one_event(id=scheme.id, type=kit.or_unknown("$.type"))
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(5),
    setup_url="https://developer.vanta.com/docs/webhooks",
)
