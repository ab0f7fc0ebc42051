"""Fireflies signs the body with HMAC-SHA256, hex behind `sha256=`, in `x-hub-signature`.

The header's name is the one that elsewhere holds SHA-1. There is no event id: it is the meeting and what
happened to it, `<meetingId>:<eventType>`; in the second version of the webhooks `<meeting_id>:<event>`. There
are no retries.

https://docs.fireflies.ai/graphql-api/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(header="x-hub-signature", prefix="sha256=")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_event = first(field("$.eventType"), field("$.event"))
events = one_event(
    id=first(joined(first(field("$.meetingId"), field("$.meeting_id")), _event), body_digest()),
    type=first(_event, fixed("unknown")),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://app.fireflies.ai/settings"
