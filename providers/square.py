"""Square signs its URL and the body with HMAC-SHA256, in base64; the key is the signature key as text.

The URL is the one registered with Square, to the letter: scheme, trailing slash and query all matter. The key looks
like base64 and is not decoded. `x-square-signature` (SHA-1) is old and never looked at. The id is `$.event_id`, the
account the merchant. Eleven tries in 24 hours.

https://developer.squareup.com/docs/webhooks/step3validate
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.event_id"),
    type=kit.or_unknown("$.type"),
    account=kit.first("$.merchant_id", "$.location_id"),
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-square-hmacsha256-signature", encoding="base64", signed="{url}{body}"),
    id_is_signed=True,
    signs_url=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.event_id",
        "body",
        because="every event has an id; the body of the page on signatures is none",
        new_on_retry=("header square-retry-number",),
    ),
    subject=kit.about(entity=("$.data.type", "$.data.id"), version="$.created_at"),
    setup_url="https://developer.squareup.com/apps",
)
