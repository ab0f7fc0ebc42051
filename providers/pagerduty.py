"""PagerDuty signs the body with HMAC-SHA256: `v1=<hex>`, several of them while secrets are rotated.

The id is `$.event.id`, the same on every attempt; `X-Webhook-Id` is not signed and
not looked at. Other
versions than `v1` are passed over. The account is the subscription; a test delivery has the type `pagey.ping`.
Retries go on for 48 hours after 5xx, 429 or a timeout; any other 4xx is final.

https://developer.pagerduty.com/docs/webhooks/webhook-signatures/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    FAILURES,
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

scheme = Hmac(header="x-pagerduty-signature", key="v1")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.event.id"), body_digest()),
    former=(header("x-webhook-id"),),
    type=first(field("$.event.event_type"), fixed("unknown")),
    account=header("x-webhook-subscription"),
    occurred_at=field("$.event.occurred_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=48),
    retries_on=FAILURES,
    disables_after="three events in a row that it had to drop: a day's pause",
    identity=told_apart_by("$.event.id", new_on_retry=("header x-webhook-id",)),
    check_secret=scheme.check_secret,
    setup_url="https://developer.pagerduty.com/docs/webhooks/v3-overview/",
)
