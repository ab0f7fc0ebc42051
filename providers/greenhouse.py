"""Greenhouse signs the body with HMAC-SHA256: `Signature: sha256 <hex>`, with a space.

The id is `Greenhouse-Event-ID`, the same on every retry and not signed; the type is `$.action`. Saving a webhook
sends the action `ping`. Seven retries in 15 hours.

https://developers.greenhouse.io/webhooks.html
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="signature", prefix="sha256 ")
verify = scheme.verify
sign = signer(scheme.sign, event_id="greenhouse-event-id")
events = one_event(
    id=header("greenhouse-event-id"),
    undated=body_digest(),
    type=first(field("$.action"), fixed("unknown")),
    account=field("$.payload.organization_id"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("header greenhouse-event-id", "receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://app.greenhouse.io/configure/dev_center/webhooks",
)
