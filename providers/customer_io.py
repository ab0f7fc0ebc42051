"""Customer.io signs `v0:<X-CIO-Timestamp>:<body>` with HMAC-SHA256, in hex without a prefix.

The id is `$.event_id`; the type is what happened to what: `email.delivered` (`$.object_type`, `$.metric`).
Customer.io waits 4 s and retries for a week.

https://docs.customer.io/journeys/webhooks/
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(
    header="x-cio-signature", signed="v0:{timestamp}:{body}", timestamp=Timestamp(header="x-cio-timestamp")
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(field("$.event_id"), body_digest()),
    type=first(
        joined(field("$.object_type"), field("$.metric"), by="."), field("$.metric"), fixed("unknown")
    ),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(days=8)
SETUP = "https://fly.customer.io/workspaces/last/journeys/integrations/webhooks"
