"""Mux signs `<t>.<body>` with HMAC-SHA256, in hex: `Mux-Signature: t=…,v1=…`, several `v1` while rotating.

The id is `$.id`, the same on every retry; `$.attempts` in the body grows. The account is the environment.
Retries go on for 24 hours.

https://www.mux.com/docs/core/verify-webhook-signatures
"""

from hookonce.providers import kit

_VOLATILE = ("$.attempts",)
events = kit.one_event(
    id=kit.or_body("$.id", without=_VOLATILE),
    type=kit.or_unknown("$.type"),
    account="$.environment.id",
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="mux-signature", key="v1", signed="{timestamp}.{body}", timestamp=kit.Timestamp(key="t")
    ),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.id"),
    volatile=_VOLATILE,
    subject=kit.about(entity=("$.object.type", "$.object.id"), version="$.created_at"),
    setup_url="https://dashboard.mux.com/settings/webhooks",
)
