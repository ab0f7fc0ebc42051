"""Authorize.Net signs the body with HMAC-SHA512, in upper-case hex behind `sha512=`.

The key is the Signature Key of the merchant's account, 128 hex digits that stand for 64 bytes. The id is
`$.notificationId`. There are ten retries within two days.

https://developer.authorize.net/api/reference/features/webhooks.html
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(
    header="x-anet-signature",
    hash="sha512",
    prefix="sha512=",
    secret="hex",  # noqa: S106  a codec's name
)
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.notificationId"), body_digest()),
    type=first(field("$.eventType"), fixed("unknown")),
    account=field("$.webhookId"),
    occurred_at=field("$.eventDate"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://account.authorize.net/"
