"""Typeform signs the body with HMAC-SHA256, in base64 behind `sha256=` (others put hex behind that).

The id is `$.event_id`, the same on every retry, the account the form. Three immediate retries, then one every
few minutes for up to ten hours; 404 and 410 switch the webhook off.

https://www.typeform.com/developers/webhooks/secure-your-webhooks/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="typeform-signature", prefix="sha256=", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.event_id"), field("$.form_response.token"), body_digest()),
    type=first(field("$.event_type"), fixed("unknown")),
    account=field("$.form_response.form_id"),
    occurred_at=field("$.form_response.submitted_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    disables_after="a 404 or a 410",
    identity=told_apart_by("$.event_id", "$.form_response.token"),
    check_secret=scheme.check_secret,
    setup_url="https://www.typeform.com/developers/webhooks/",
)
