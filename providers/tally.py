"""Tally signs the body with HMAC-SHA256, in base64.

The id is `$.eventId`, the type `$.eventType` (FORM_RESPONSE). Tally tries five more times: after 5 minutes, half an
hour, an hour, six hours and a day. A webhook without a signing secret is not signed, and refused.

https://tally.so/help/webhooks
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

scheme = Hmac(header="tally-signature", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.eventId"), body_digest()),
    type=first(field("$.eventType"), fixed("unknown")),
    account=field("$.data.formId"),
    occurred_at=field("$.createdAt"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by("$.eventId"),
    check_secret=scheme.check_secret,
    setup_url="https://tally.so/dashboard",
)
