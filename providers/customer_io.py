"""Customer.io signs `v0:<X-CIO-Timestamp>:<body>` with HMAC-SHA256, in hex without a prefix.

The id is `$.event_id`; the type is what happened to what: `email.delivered` (`$.object_type`, `$.metric`).
Customer.io waits 4 s and retries for a week.

https://docs.customer.io/journeys/webhooks/
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
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-cio-signature", signed="v0:{timestamp}:{body}", timestamp=Timestamp(header="x-cio-timestamp")
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.event_id"), body_digest()),
    type=first(join(field("$.object_type"), field("$.metric"), by="."), field("$.metric"), fixed("unknown")),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=8),
    identity=told_apart_by("$.event_id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://fly.customer.io/workspaces/last/journeys/integrations/webhooks",
)
