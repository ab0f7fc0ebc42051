"""Webflow signs `<time>:<body>` with HMAC-SHA256, in hex, in `x-webflow-signature`.

The key is the webhook's own secret, or the app's client secret for webhooks made through OAuth. There is no
event id (`$.payload.id` is the item's), so the body is known by its fingerprint. The type is `$.triggerType`,
the account the site. Three retries, ten minutes apart.

https://developers.webflow.com/data/docs/working-with-webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(
    header="x-webflow-signature",
    signed="{timestamp}:{body}",
    timestamp=Timestamp(header="x-webflow-timestamp", unit="any"),
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=body_digest(),
    type=first(field("$.triggerType"), fixed("unknown")),
    account=first(field("$.payload.siteId"), field("$.site")),
    occurred_at=first(field("$.payload.submittedAt"), field("$.payload.lastUpdated")),
)
RETRY_HORIZON = timedelta(hours=3)
SETUP = "https://webflow.com/dashboard"
