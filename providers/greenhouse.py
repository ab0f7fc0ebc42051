"""Greenhouse signs the body with HMAC-SHA256: `Signature: sha256 <hex>`, with a space.

The id is `Greenhouse-Event-ID`, the same on every retry and not signed; the type is `$.action`. Saving a webhook
sends the action `ping`. Seven retries in 15 hours.

https://developers.greenhouse.io/webhooks.html
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, header, one_event, signer

scheme = Hmac(header="signature", prefix="sha256 ")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, event_id="greenhouse-event-id")
events = one_event(
    id=first(header("greenhouse-event-id"), body_digest()),
    type=first(field("$.action"), fixed("unknown")),
    account=field("$.payload.organization_id"),
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.greenhouse.io/configure/dev_center/webhooks"
