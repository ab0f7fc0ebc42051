"""Fourthwall signs the body with HMAC-SHA256, in base64, in `X-Fourthwall-Hmac-SHA256`.

Webhooks of a platform app are signed in `X-Fourthwall-Hmac-Apps-SHA256`, with the app's HMAC key; each header that is
there is tried, and one right signature is enough. The id is `$.id`, the type `$.type` (`ORDER_PLACED`), the account
the shop.

https://docs.fourthwall.com/webhooks/signature-verification
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"), type=kit.or_unknown("$.type"), account="$.shopId", occurred_at="$.createdAt"
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header=("x-fourthwall-hmac-sha256", "x-fourthwall-hmac-apps-sha256"), every=True, encoding="base64"
    ),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.id"),
    mode=kit.mode("$.testMode", live=(False,)),
    setup_url="https://docs.fourthwall.com/webhooks/getting-started",
)
