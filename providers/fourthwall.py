"""Fourthwall signs the body with HMAC-SHA256, in base64, in `X-Fourthwall-Hmac-SHA256`.

Webhooks of a platform app are signed in `X-Fourthwall-Hmac-Apps-SHA256`, with the app's HMAC key. The id is `$.id`,
the type `$.type` (`ORDER_PLACED`), the account the shop.

https://docs.fourthwall.com/webhooks/signature-verification
"""

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(
    header=("x-fourthwall-hmac-sha256", "x-fourthwall-hmac-apps-sha256"), every=True, encoding="base64"
)
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.shopId"),
    occurred_at=field("$.createdAt"),
)
SETUP = "https://docs.fourthwall.com/webhooks/getting-started"
