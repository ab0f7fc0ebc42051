"""AfterShip signs the body with HMAC-SHA256, in base64.

The id is `$.event_id`, the type `$.event`. There are 14 retries within three days.

https://www.aftership.com/docs/tracking/webhook/webhook-overview
"""

from hookonce.providers import kit

events = kit.one_event(id=kit.or_body("$.event_id"), type=kit.or_unknown("$.event"), occurred_at="$.ts")
sender = kit.Sender(
    scheme=kit.Hmac(header="aftership-hmac-sha256", encoding="base64"),
    id_is_signed=True,
    retry_horizon=kit.days(4),
    identity=kit.told_apart_by("$.event_id"),
    setup_url="https://admin.aftership.com/settings/webhooks",
)
