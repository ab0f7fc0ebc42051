"""Square signs its URL and the body with HMAC-SHA256, in base64; the key is the signature key as text.

The URL is the one registered with Square, to the letter: scheme, trailing slash and query count. The key looks
like base64 and is not decoded. `x-square-signature` (SHA-1) is old and never looked at. The id is `$.event_id`,
the account the merchant. Eleven tries in 24 hours.

https://developer.squareup.com/docs/webhooks/step3validate
"""

from datetime import timedelta

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

scheme = Hmac(header="x-square-hmacsha256-signature", encoding="base64", signed="{url}{body}")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.event_id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=first(field("$.merchant_id"), field("$.location_id")),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    signs_url=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by(
        "$.event_id",
        "body",
        because="every event has an id; the body of the page on signatures is none",
        new_on_retry=("header square-retry-number",),
    ),
    check_secret=scheme.check_secret,
    setup_url="https://developer.squareup.com/apps",
)
