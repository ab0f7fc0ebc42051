"""Fireflies signs the body with HMAC-SHA256, hex behind `sha256=`, in `x-hub-signature`.

The header's name is the one that elsewhere holds SHA-1. There is no event id: it is the meeting and what
happened to it, `<meetingId>:<eventType>`; in the second version of the webhooks `<meeting_id>:<event>`. There
are no retries.

https://docs.fireflies.ai/graphql-api/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-hub-signature", prefix="sha256=")
verify = scheme.verify
sign = signer(scheme.sign)
_event = first(field("$.eventType"), field("$.event"))
events = one_event(
    id=first(join(first(field("$.meetingId"), field("$.meeting_id")), _event), body_digest()),
    type=first(_event, fixed("unknown")),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    retries_on=(),
    identity=told_apart_by("$.eventType + $.meetingId", "$.event + $.meeting_id"),
    check_secret=scheme.check_secret,
    setup_url="https://app.fireflies.ai/settings",
)
