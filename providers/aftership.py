"""AfterShip signs the body with HMAC-SHA256, in base64.

The id is `$.event_id`, the type `$.event`. There are 14 retries within three days.

https://www.aftership.com/docs/tracking/webhook/webhook-overview
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

scheme = Hmac(header="aftership-hmac-sha256", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.event_id"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    occurred_at=field("$.ts"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=4),
    identity=told_apart_by("$.event_id"),
    check_secret=scheme.check_secret,
    setup_url="https://admin.aftership.com/settings/webhooks",
)
