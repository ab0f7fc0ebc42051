"""Fireflies signs the body with HMAC-SHA256, hex behind `sha256=`, in `x-hub-signature`.

The header's name is the one that elsewhere holds SHA-1. There is no event id: it is the meeting and what happened to
it, `<meetingId>:<eventType>`; in the second version of the webhooks also when, for a summary may be made again and the
bot join again: `<meeting_id>:<event>:<timestamp>`.

https://docs.fireflies.ai/graphql-api/webhooks-v2
"""

from hookonce.providers import kit

_second = kit.join("$.meeting_id", "$.event")
events = kit.one_event(
    id=kit.or_body(kit.join("$.meetingId", "$.eventType"), kit.join(_second, "$.timestamp")),
    type=kit.or_unknown("$.eventType", "$.event"),
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-hub-signature", prefix="sha256="),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.eventType + $.meetingId", "$.event + $.meeting_id + $.timestamp"),
    setup_url="https://app.fireflies.ai/settings",
)
