"""Airship signs `<X-UA-TIMESTAMP>:<body>` with HMAC-SHA256, in hex.

The id is `$.id`; what has none is known by its fingerprint. What Airship sends for open channels is not
taken: it is compressed, and a URL below ours is asked for a confirmation code.

https://docs.airship.com/
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(
    header="x-ua-signature", signed="{timestamp}:{body}", timestamp=Timestamp(header="x-ua-timestamp")
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.occurred"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://go.airship.com/"
