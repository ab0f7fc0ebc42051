"""OpenAI follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

A secret that starts with `whsec_` is decoded, any other is the key as it stands, as in OpenAI's SDK. The id is
the header `webhook-id`, which OpenAI says to deduplicate on; `$.id` is that of the event. The body only holds
ids: ask the API. Retries go on for three days.

https://platform.openai.com/docs/guides/webhooks
"""

from hookonce.providers import kit


def _forms(secret: str) -> tuple[str]:
    return (secret if secret.startswith("whsec_") else kit.as_whsec(secret),)


scheme = kit.StandardWebhooks(vendors=("webhook",), forms=_forms)
events = kit.one_event(id=scheme.id, type=kit.or_unknown("$.type"), occurred_at="$.created_at")
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    setup_url="https://platform.openai.com/settings/project/webhooks",
)
