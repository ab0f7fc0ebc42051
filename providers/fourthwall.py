"""Fourthwall signs the body with HMAC-SHA256, in base64, in `X-Fourthwall-Hmac-SHA256`.

Webhooks of a platform app are signed in `X-Fourthwall-Hmac-Apps-SHA256`, with the app's HMAC key. The id is `$.id`,
the type `$.type` (`ORDER_PLACED`), the account the shop.

https://docs.fourthwall.com/webhooks/signature-verification
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header=("x-fourthwall-hmac-sha256", "x-fourthwall-hmac-apps-sha256"), every=True, encoding="base64"
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.shopId"),
    occurred_at=field("$.createdAt"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://docs.fourthwall.com/webhooks/getting-started",
)
