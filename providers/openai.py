"""OpenAI follows Standard Webhooks: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

A secret that starts with `whsec_` is decoded, any other is the key as it stands, as in OpenAI's SDK. The id is
the header `webhook-id`, which OpenAI says to deduplicate on; `$.id` is that of the event. The body only holds
ids: ask the API. Retries go on for three days.

https://platform.openai.com/docs/guides/webhooks
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer
from providers.kit.keys import as_whsec


def _forms(secret: str) -> tuple[str]:
    return (secret if secret.startswith("whsec_") else as_whsec(secret),)


scheme = StandardWebhooks(vendors=("webhook",), forms=_forms)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.created_at"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://platform.openai.com/settings/project/webhooks"
