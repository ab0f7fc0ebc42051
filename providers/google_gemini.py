"""Gemini API webhooks follow Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

For webhooks with a secret; the ones that are set on single requests are signed with a key of Google's instead
and are not taken here. The secret may come with or without `whsec_`. The id is the header `webhook-id`; the
body only points to the result of the job.

https://ai.google.dev/gemini-api/docs/webhooks
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook",))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://ai.google.dev/gemini-api/docs/webhooks"
