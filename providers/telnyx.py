"""Telnyx signs `<time>|<body>` with its Ed25519 key, in base64; the separator is a pipe.

The secret is the account's public key, from the portal, in base64. The id is `$.data.id`, the same on every
attempt; `$.meta.attempt` counts them. TeXML sends forms, which are known by their fingerprint. Telnyx tries three
times, then the failover URL. Meeting bots sign with another header and are not taken.

https://developers.telnyx.com/development/api-fundamentals/webhooks/receiving-webhooks
"""

from datetime import timedelta

from providers.kit import Timestamp, any_body, body_digest, field, first, fixed, one_event, signer
from providers.kit.signed import Signed

scheme = Signed(
    header="telnyx-signature-ed25519",
    algorithm="ed25519",
    signed="{timestamp}|{body}",
    timestamp=Timestamp(header="telnyx-timestamp"),
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
VOLATILE = ("$.meta.attempt",)
events = one_event(
    id=first(field("$.data.id"), body_digest(*VOLATILE)),
    type=first(field("$.data.event_type"), field("$.CallStatus"), fixed("unknown")),
    account=first(
        field("$.data.payload.connection_id"),
        field("$.data.payload.messaging_profile_id"),
        field("$.AccountSid"),
    ),
    occurred_at=field("$.data.occurred_at"),
    read=any_body,
)
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://portal.telnyx.com"
