"""Cloudflare Stream signs `<time>.<body>` with HMAC-SHA256, in hex, in a header like `time=1767225600,sig1=…`.

There is no id: it is made of the video's and its state, which is the type (`ready`, `error`). Only Stream's
webhooks are taken here; Cloudflare's notifications carry a token and belong to a source of their own.

https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(
    header="webhook-signature", key="sig1", signed="{timestamp}.{body}", timestamp=Timestamp(key="time")
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(joined(field("$.uid"), field("$.status.state")), body_digest()),
    type=first(field("$.status.state"), fixed("unknown")),
    account=field("$.account_id"),
    occurred_at=field("$.modified"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/"
