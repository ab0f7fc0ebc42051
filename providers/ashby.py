"""Ashby signs the body with HMAC-SHA256, in hex behind `sha256=`.

The id is `$.data.webhookActionId`; what has none (a ping) is known by its fingerprint and the minute of receipt. The
type is `$.action`; `ping` is an event too, sent when a webhook is saved. What failed is tried nine times more, for 2.8
hours at the least, unless the answer was 401, 403, 404, 405 or 410.

https://developers.ashbyhq.com/docs/authenticating-webhooks
https://developers.ashbyhq.com/docs/retries
"""

from hookonce.providers import kit

events = kit.one_event(
    id="$.data.webhookActionId", undated=kit.body_digest(), type=kit.or_unknown("$.action")
)
sender = kit.Sender(
    scheme=kit.Hmac(header="ashby-signature", prefix="sha256="),
    id_is_signed=True,
    retry_horizon=kit.hours(3),
    retries_on=tuple({*kit.UNSUCCESSFUL} - {401, 403, 404, 405, 410}),
    identity=kit.told_apart_by("$.data.webhookActionId", "receipt"),
    id_period=kit.minutes(1),
    setup_url="https://app.ashbyhq.com/admin/api/webhooks",
)
