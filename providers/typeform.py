"""Typeform signs the body with HMAC-SHA256, in base64 behind `sha256=` (others put hex behind that).

The id is `$.event_id`, the same on every retry, the account the form. Three immediate retries, then one every
few minutes for up to ten hours; 404 and 410 switch the webhook off.

https://www.typeform.com/developers/webhooks/secure-your-webhooks/
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="typeform-signature", prefix="sha256=", encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.event_id"), field("$.form_response.token"), body_digest()),
    type=first(field("$.event_type"), fixed("unknown")),
    account=field("$.form_response.form_id"),
    occurred_at=field("$.form_response.submitted_at"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://www.typeform.com/developers/webhooks/"
