"""AfterShip signs the body with HMAC-SHA256, in base64.

The id is `$.event_id`, the type `$.event`. There are 14 retries within three days.

https://www.aftership.com/docs/tracking/webhook/webhook-overview
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="aftership-hmac-sha256", encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.event_id"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    occurred_at=field("$.ts"),
)
RETRY_HORIZON = timedelta(days=4)
SETUP = "https://admin.aftership.com/settings/webhooks"
