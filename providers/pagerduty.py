"""PagerDuty signs the body with HMAC-SHA256: `v1=<hex>`, several of them while secrets are rotated.

The id is `$.event.id`, the same on every attempt; `X-Webhook-Id` is not signed and
not looked at. Other
versions than `v1` are passed over. The account is the subscription; a test delivery has the type `pagey.ping`.
Retries go on for 48 hours after 5xx, 429 or a timeout; any other 4xx is final.

https://developer.pagerduty.com/docs/webhooks/webhook-signatures/
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.event.id"),
    type=kit.or_unknown("$.event.event_type"),
    account="header x-webhook-subscription",
    occurred_at="$.event.occurred_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-pagerduty-signature", key="v1"),
    id_is_signed=True,
    retry_horizon=kit.hours(48),
    retries_on=kit.FAILURES,
    disables_after="three events in a row that it had to drop: a day's pause",
    identity=kit.told_apart_by("$.event.id", new_on_retry=("header x-webhook-id",)),
    subject=kit.about(entity=("$.event.data.type", "$.event.data.id"), version="$.event.occurred_at"),
    setup_url="https://developer.pagerduty.com/docs/webhooks/v3-overview/",
)
