"""OpenAI follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

A secret that starts with `whsec_` is decoded, any other is the key as it stands, as in OpenAI's SDK. The id is
the header `webhook-id`, which OpenAI says to deduplicate on; `$.id` is that of the event. The body only holds
ids: ask the API. Retries go on for three days.

https://platform.openai.com/docs/guides/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, as_whsec, field, first, fixed, one_event, signer


def _forms(secret: str) -> tuple[str]:
    return (secret if secret.startswith("whsec_") else as_whsec(secret),)


scheme = StandardWebhooks(vendors=("webhook",), forms=_forms)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://platform.openai.com/settings/project/webhooks",
)
