"""ElevenLabs signs `<t>.<body>` with HMAC-SHA256, in hex, in a header like `t=1767225600,v0=…`.

The time may be half an hour off, as in ElevenLabs' SDK (which takes any from the future). There is no id: it is
made of the type, the conversation and the time; what is about no conversation is known by its fingerprint.
Webhooks that fail again and again are switched off.

https://elevenlabs.io/docs/product-guides/administration/webhooks
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
    header="elevenlabs-signature",
    key="v0",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t", tolerance=timedelta(minutes=30)),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(
        join(field("$.type"), field("$.data.conversation_id"), field("$.event_timestamp")), body_digest()
    ),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.data.agent_id"),
    occurred_at=field("$.event_timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    disables_after="several failures",
    identity=told_apart_by("$.event_timestamp + $.type"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://elevenlabs.io/app/settings/webhooks",
)
