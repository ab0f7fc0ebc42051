"""Fireflies signs the body with HMAC-SHA256, hex behind `sha256=`, in `x-hub-signature`.

The header's name is the one that elsewhere holds SHA-1. There is no event id: it is the meeting and what
happened to it, `<meetingId>:<eventType>`; in the second version of the webhooks `<meeting_id>:<event>`. There
are no retries.

https://docs.fireflies.ai/graphql-api/webhooks
"""

from hookonce.providers import kit

_event = kit.first("$.eventType", "$.event")
events = kit.one_event(
    id=kit.or_body(kit.join(kit.first("$.meetingId", "$.meeting_id"), _event)),
    type=kit.or_unknown(_event),
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-hub-signature", prefix="sha256="),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    retries_on=(),
    identity=kit.told_apart_by("$.eventType + $.meetingId", "$.event + $.meeting_id"),
    setup_url="https://app.fireflies.ai/settings",
)
