"""Supabase Auth hooks follow Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The secret is `v1,whsec_<base64>` as the dashboard shows it; several, with `|` between, are taken as they are
configured at Supabase. Hooks wait 5 s for the answer and act on it: this module answers `{}`, which is right for
`send-sms` and `send-email`. A hook whose answer decides (custom claims, password or MFA attempts) can't be served
by an inbox. Older servers do not name the hook: the type is then told by what the body has (names as in
`v0hooks.go`). Database webhooks are another thing and not signed.

https://supabase.com/docs/guides/auth/auth-hooks
"""

from datetime import timedelta
from typing import Final

from hookonce.providers import Reply
from hookonce.providers.kit import (
    EventView,
    Extractor,
    Sender,
    StandardWebhooks,
    field,
    first,
    fixed,
    one_event,
    signer,
)

_MARKS: Final = {
    "sms": "send-sms",
    "email_data": "send-email",
    "claims": "customize-access-token",
    "factor_id": "mfa-verification",
    "valid": "password-verification",
}
"""A key that only one kind of hook has, and that hook."""


def _forms(secret: str) -> tuple[str, ...]:
    return tuple(part.strip().removeprefix("v1,") for part in secret.split("|"))


def _kind(view: EventView) -> str | None:
    keys = view.data if isinstance(view.data, dict) else {}
    return next((kind for mark, kind in _MARKS.items() if mark in keys), None)


scheme = StandardWebhooks(vendors=("webhook",), forms=_forms)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.metadata.name"), Extractor(_kind, "the body's keys"), fixed("auth-hook")),
    occurred_at=field("$.metadata.time"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(minutes=5),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    accepted=Reply(body=b"{}", content_type="application/json"),
    check_secret=scheme.check_secret,
    setup_url="https://supabase.com/dashboard/project/_/auth/hooks",
)
