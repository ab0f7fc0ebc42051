"""Greenhouse signs the body with HMAC-SHA256: `Signature: sha256 <hex>`, with a space.

The id is `Greenhouse-Event-ID`, the same on every retry and not signed; the type is `$.action`. Saving a webhook
sends the action `ping`. Seven retries in 15 hours.

https://developers.greenhouse.io/webhooks.html
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="signature", prefix="sha256 ")
sign = kit.signer(scheme.sign, event_id="greenhouse-event-id")
events = kit.one_event(
    id="header greenhouse-event-id",
    undated=kit.body_digest(),
    type=kit.or_unknown("$.action"),
    account="$.payload.organization_id",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="a body is a candidate as it is now, and may lead back to what it was",
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("header greenhouse-event-id", "receipt"),
    id_period=kit.minutes(1),
    setup_url="https://app.greenhouse.io/configure/dev_center/webhooks",
)
