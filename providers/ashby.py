"""Ashby signs the body with HMAC-SHA256, in hex behind `sha256=`.

The id is `$.data.webhookActionId`; what has none (a ping) by its fingerprint and the minute of receipt. The type is
`$.action`; `ping` is an event too, sent when a webhook is saved.

https://developers.ashbyhq.com/docs/authenticating-webhooks
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

scheme = Hmac(header="ashby-signature", prefix="sha256=")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=field("$.data.webhookActionId"), undated=body_digest(), type=first(field("$.action"), fixed("unknown"))
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.data.webhookActionId", "receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://app.ashbyhq.com/admin/api/webhooks",
)
