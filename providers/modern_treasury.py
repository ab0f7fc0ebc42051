"""Modern Treasury signs the body with HMAC-SHA256, in hex, in `X-Signature`.

The id is `X-Webhook-ID`, the account `X-Organization-ID`; both are outside of what is signed. The type is the
topic and the event, `payment_order.created`. Eight retries in about three days.

https://docs.moderntreasury.com/platform/reference/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, header, joined, one_event, signer

scheme = Hmac(header="x-signature")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, event_id="x-webhook-id", type="x-topic")
_topic = first(header("x-topic"), field("$.data.object"))
events = one_event(
    id=first(header("x-webhook-id"), body_digest()),
    type=first(joined(_topic, field("$.event"), by="."), _topic, fixed("unknown")),
    account=header("x-organization-id"),
    occurred_at=first(field("$.data.updated_at"), field("$.data.created_at")),
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://app.moderntreasury.com/developers/webhooks"
