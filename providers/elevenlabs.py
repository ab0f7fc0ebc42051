"""ElevenLabs signs `<t>.<body>` with HMAC-SHA256, in hex, in a header like `t=1767225600,v0=…`.

The time may be half an hour off, as in ElevenLabs' SDK (which takes any from the future). There is no id: it is
made of the type, the conversation and the time; what is about no conversation is known by its fingerprint.
Webhooks that fail again and again are switched off.

https://elevenlabs.io/docs/product-guides/administration/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body(kit.join("$.type", "$.data.conversation_id", "$.event_timestamp")),
    type=kit.or_unknown("$.type"),
    account="$.data.agent_id",
    occurred_at="$.event_timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="elevenlabs-signature",
        key="v0",
        signed="{timestamp}.{body}",
        timestamp=kit.Timestamp(key="t", tolerance=kit.minutes(30)),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    disables_after="several failures",
    identity=kit.told_apart_by("$.event_timestamp + $.type"),
    setup_url="https://elevenlabs.io/app/settings/webhooks",
)
