"""Webflow signs `<time>:<body>` with HMAC-SHA256, in hex, in `x-webflow-signature`.

The key is the webhook's own secret, or the app's client secret for webhooks made through OAuth. There is no
event id (`$.payload.id` is the item's), and what is unpublished comes with ids only, just so each time: the event is
the body's fingerprint and when it was signed. Receivers are told to refuse a time of more than five minutes ago and
retries come after ten, so each is signed anew: what was signed within eleven minutes and says the same is one event.
The type is `$.triggerType`, the account the site. Three retries, ten minutes apart.

https://developers.webflow.com/data/docs/working-with-webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Attempts,
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-webflow-signature",
    signed="{timestamp}:{body}",
    timestamp=Timestamp(header="x-webflow-timestamp", unit="any", written="ms"),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=body_digest(),
    attempts=Attempts(scheme.signed_at, within=timedelta(minutes=11)),
    former=(body_digest(),),
    type=first(field("$.triggerType"), fixed("unknown")),
    account=first(field("$.payload.siteId"), field("$.site")),
    occurred_at=first(field("$.payload.submittedAt"), field("$.payload.lastUpdated")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=3),
    identity=told_apart_by(
        "signed period", known_from="https://developers.webflow.com/data/docs/working-with-webhooks"
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://webflow.com/dashboard",
)
