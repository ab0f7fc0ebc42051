"""Airwallex signs `<x-timestamp><body>`, with nothing between, with HMAC-SHA256 in hex.

The time is in milliseconds and may be five minutes off, as in Airwallex' SDK. The id is `$.id`, the type
`$.name`. Each notification URL has its own secret. Retries go on for three days.

https://www.airwallex.com/docs/developer-tools/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(
    header="x-signature",
    signed="{timestamp}{body}",
    timestamp=Timestamp(header="x-timestamp", unit="ms"),
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.name"), fixed("unknown")),
    account=first(field("$.account_id"), field("$.accountId")),
    occurred_at=first(field("$.created_at"), field("$.createdAt")),
)
RETRY_HORIZON = timedelta(days=4)
SETUP = "https://www.airwallex.com/app/developer/webhooks"
