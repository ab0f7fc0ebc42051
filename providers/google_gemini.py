"""Gemini API webhooks follow Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

For webhooks with a secret; the ones that are set on single requests are signed with a key of Google's instead
and are not taken here. The secret may come with or without `whsec_`. The id is the header `webhook-id`; the
body only points to the result of the job.

https://ai.google.dev/gemini-api/docs/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook",))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://ai.google.dev/gemini-api/docs/webhooks",
)
