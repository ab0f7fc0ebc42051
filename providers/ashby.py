"""Ashby signs the body with HMAC-SHA256, in hex behind `sha256=`.

The id is `$.data.webhookActionId`; what has none (a ping) is known by its fingerprint and the minute of receipt. The
type is `$.action`; `ping` is an event too, sent when a webhook is saved.

https://developers.ashbyhq.com/docs/authenticating-webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id="$.data.webhookActionId", undated=kit.body_digest(), type=kit.or_unknown("$.action")
)
sender = kit.Sender(
    scheme=kit.Hmac(header="ashby-signature", prefix="sha256="),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.data.webhookActionId", "receipt"),
    id_period=kit.minutes(1),
    setup_url="https://app.ashbyhq.com/admin/api/webhooks",
)
