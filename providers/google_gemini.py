"""Gemini API webhooks follow Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

For webhooks with a secret; the ones that are set on single requests are signed with a key of Google's instead
and are not taken here. The secret may come with or without `whsec_`. The id is the header `webhook-id`; the
body only points to the result of the job.

https://ai.google.dev/gemini-api/docs/webhooks
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook",))
events = kit.one_event(id=scheme.id, type=kit.or_unknown("$.type"), occurred_at="$.timestamp")
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    setup_url="https://ai.google.dev/gemini-api/docs/webhooks",
)
