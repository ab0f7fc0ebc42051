"""Webflow signs `<time>:<body>` with HMAC-SHA256, in hex, in `x-webflow-signature`.

The key is the webhook's own secret, or the app's client secret for webhooks made through OAuth. There is no
event id (`$.payload.id` is the item's), and what is unpublished comes with ids only, just so each time: the event is
the body's fingerprint and when it was signed. Receivers are told to refuse a time of more than five minutes ago and
retries come after ten, so each is signed anew: what was signed within eleven minutes and says the same is one event.
The type is `$.triggerType`, the account the site. Three retries, ten minutes apart.

https://developers.webflow.com/data/docs/working-with-webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(
    header="x-webflow-signature",
    signed="{timestamp}:{body}",
    timestamp=kit.Timestamp(header="x-webflow-timestamp", unit="any", written="ms"),
)
events = kit.one_event(
    id=kit.body_digest(),
    attempts=kit.Attempts(scheme.signed_at, within=kit.minutes(11)),
    type=kit.or_unknown("$.triggerType"),
    account=kit.first("$.payload.siteId", "$.site"),
    occurred_at=kit.first("$.payload.submittedAt", "$.payload.lastUpdated"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.hours(3),
    identity=kit.told_apart_by(
        "signed period", known_from="https://developers.webflow.com/data/docs/working-with-webhooks"
    ),
    setup_url="https://webflow.com/dashboard",
)
