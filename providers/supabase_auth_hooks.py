"""Supabase Auth hooks follow Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The secret is `v1,whsec_<base64>` as the dashboard shows it; several, with `|` between, are taken as they are
configured at Supabase. Hooks wait 5 s for the answer and act on it: this module answers `{}`, which is right for
`send-sms` and `send-email`. A hook whose answer decides (custom claims, password or MFA attempts) can't be served
by an inbox. Older servers do not name the hook: the type is then told by what the body has (names as in
`v0hooks.go`). Database webhooks are another thing and not signed.

https://supabase.com/docs/guides/auth/auth-hooks
"""

from typing import Final

from hookonce.providers import Reply, kit

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


def _kind(view: kit.EventView) -> str | None:
    keys = view.data if isinstance(view.data, dict) else {}
    return next((kind for mark, kind in _MARKS.items() if mark in keys), None)


scheme = kit.StandardWebhooks(vendors=("webhook",), forms=_forms)
events = kit.one_event(
    id=scheme.id,
    type=kit.first("$.metadata.name", kit.Extractor(_kind, "the body's keys"), kit.fixed("auth-hook")),
    occurred_at="$.metadata.time",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.minutes(5),
    accepted=Reply(body=b"{}", content_type="application/json"),
    setup_url="https://supabase.com/dashboard/project/_/auth/hooks",
)
