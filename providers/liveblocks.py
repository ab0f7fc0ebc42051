"""Liveblocks follows Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The id is the header `webhook-id`, the type `$.type`, the account the project's id. A secret may have one base64
digit more than its bytes need; Liveblocks' SDK passes over it, so this module does.

https://liveblocks.io/docs/platform/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

_DIGITS = 4
"""Base64 is read four digits at a time; one alone makes no byte."""


def _forms(secret: str) -> tuple[str]:
    text = secret.strip().removeprefix("whsec_").rstrip("=")
    return ("whsec_" + (text[:-1] if len(text) % _DIGITS == 1 else text),)


scheme = StandardWebhooks(vendors=("webhook", "svix"), forms=_forms)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.data.projectId"),
    occurred_at=first(field("$.data.createdAt"), field("$.data.updatedAt"), field("$.data.deletedAt")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://liveblocks.io/dashboard",
)
