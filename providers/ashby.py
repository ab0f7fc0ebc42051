"""Ashby signs the body with HMAC-SHA256, in hex behind `sha256=`.

The id is `$.data.webhookActionId`; what has none is known by its fingerprint. The type is `$.action`; `ping` is
an event too, sent when a webhook is saved.

https://developers.ashbyhq.com/docs/authenticating-webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="ashby-signature", prefix="sha256=")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.data.webhookActionId"), body_digest()), type=first(field("$.action"), fixed("unknown"))
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.ashbyhq.com/admin/api/webhooks"
