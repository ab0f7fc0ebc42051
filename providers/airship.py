"""Airship signs `<X-UA-TIMESTAMP>:<body>` with HMAC-SHA256, in hex.

The id is `$.id`; what has none is known by its fingerprint. What Airship sends for open channels is not
taken: it is compressed, and a URL below ours is asked for a confirmation code.

https://docs.airship.com/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-ua-signature", signed="{timestamp}:{body}", timestamp=Timestamp(header="x-ua-timestamp")
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.occurred"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.id", "$.audience"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://go.airship.com/",
)
