"""Liveblocks follows Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The id is the header `webhook-id`, the type `$.type`, the account the project's id. A secret may have one base64
digit more than its bytes need; Liveblocks' SDK passes over it, so this module does.

https://liveblocks.io/docs/platform/webhooks
"""

from hookonce.providers import kit

_DIGITS = 4
"""Base64 is read four digits at a time; one alone makes no byte."""


def _forms(secret: str) -> tuple[str]:
    text = secret.strip().removeprefix("whsec_").rstrip("=")
    return ("whsec_" + (text[:-1] if len(text) % _DIGITS == 1 else text),)


scheme = kit.StandardWebhooks(vendors=("webhook", "svix"), forms=_forms)
events = kit.one_event(
    id=scheme.id,
    type=kit.or_unknown("$.type"),
    account="$.data.projectId",
    occurred_at=kit.first("$.data.createdAt", "$.data.updatedAt", "$.data.deletedAt"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    setup_url="https://liveblocks.io/dashboard",
)
