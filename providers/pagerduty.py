"""PagerDuty signs the body with HMAC-SHA256: `v1=<hex>`, several of them while secrets are rotated.

The id is `X-Webhook-Id`, the same on every attempt and not signed; without it, `$.event.id`. Other versions than
`v1` are passed over. The account is the subscription; a test delivery has the type `pagey.ping`. Retries go on
for 48 hours after 5xx, 429 or a timeout; any other 4xx is final.

https://developer.pagerduty.com/docs/webhooks/webhook-signatures/
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, header, one_event, signer

scheme = Hmac(header="x-pagerduty-signature", key="v1")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, event_id="x-webhook-id")
events = one_event(
    id=first(header("x-webhook-id"), field("$.event.id"), body_digest()),
    type=first(field("$.event.event_type"), fixed("unknown")),
    account=header("x-webhook-subscription"),
    occurred_at=field("$.event.occurred_at"),
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(hours=48)
SETUP = "https://developer.pagerduty.com/docs/webhooks/v3-overview/"
