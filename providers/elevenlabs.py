"""ElevenLabs signs `<t>.<body>` with HMAC-SHA256, in hex, in a header like `t=1767225600,v0=…`.

The time may be half an hour off, as in ElevenLabs' SDK (which takes any from the future). There is no id: it is
made of the type, the conversation and the time; what is about no conversation is known by its fingerprint.
Webhooks that fail again and again are switched off.

https://elevenlabs.io/docs/product-guides/administration/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(
    header="elevenlabs-signature",
    key="v0",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t", tolerance=timedelta(minutes=30)),
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(
        joined(field("$.type"), field("$.data.conversation_id"), field("$.event_timestamp")), body_digest()
    ),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.data.agent_id"),
    occurred_at=field("$.event_timestamp"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://elevenlabs.io/app/settings/webhooks"
