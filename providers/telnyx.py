"""Telnyx signs `<time>|<body>` with its Ed25519 key, in base64; the separator is a pipe.

The secret is the account's public key, from the portal, in base64. The id is `$.data.id`, the same on every
attempt; `$.meta.attempt` counts them. TeXML sends forms, which are known by their fingerprint. Telnyx tries three
times, then the failover URL. Meeting bots sign with another header and are not taken.

https://developers.telnyx.com/development/api-fundamentals/webhooks/receiving-webhooks
"""

from hookonce.providers import kit

_VOLATILE = ("$.meta.attempt",)
events = kit.one_event(
    id=kit.or_body("$.data.id", without=_VOLATILE),
    type=kit.or_unknown("$.data.event_type", "$.CallStatus"),
    account=kit.first("$.data.payload.connection_id", "$.data.payload.messaging_profile_id", "$.AccountSid"),
    occurred_at="$.data.occurred_at",
    read=kit.any_body,
)
sender = kit.Sender(
    scheme=kit.Signed(
        header="telnyx-signature-ed25519",
        algorithm="ed25519",
        signed="{timestamp}|{body}",
        timestamp=kit.Timestamp(header="telnyx-timestamp"),
    ),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$.data.id"),
    volatile=_VOLATILE,
    subject=kit.about(
        entity=(kit.first("$.data.payload.id", "$.data.payload.call_leg_id"),), version="$.data.occurred_at"
    ),
    setup_url="https://portal.telnyx.com",
)
