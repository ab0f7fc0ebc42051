"""Customer.io signs `v0:<X-CIO-Timestamp>:<body>` with HMAC-SHA256, in hex without a prefix.

The id is `$.event_id`; the type is what happened to what: `email.delivered` (`$.object_type`, `$.metric`).
Customer.io waits 4 s and retries for a week.

https://docs.customer.io/journeys/webhooks/
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.event_id"),
    type=kit.or_unknown(kit.join("$.object_type", "$.metric", by="."), "$.metric"),
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="x-cio-signature",
        signed="v0:{timestamp}:{body}",
        timestamp=kit.Timestamp(header="x-cio-timestamp"),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(8),
    identity=kit.told_apart_by("$.event_id"),
    setup_url="https://fly.customer.io/workspaces/last/journeys/integrations/webhooks",
)
