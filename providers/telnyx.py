"""Telnyx signs `<time>|<body>` with its Ed25519 key, in base64; the separator is a pipe.

The secret is the account's public key, from the portal, in base64. The id is `$.data.id`, the same on every
attempt; `$.meta.attempt` counts them. TeXML sends forms, which are known by their fingerprint. Telnyx tries three
times, then the failover URL. Meeting bots sign with another header and are not taken.

https://developers.telnyx.com/development/api-fundamentals/webhooks/receiving-webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    Timestamp,
    any_body,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.schemes.public_key_signature import Signed

scheme = Signed(
    header="telnyx-signature-ed25519",
    algorithm="ed25519",
    signed="{timestamp}|{body}",
    timestamp=Timestamp(header="telnyx-timestamp"),
)
verify = scheme.verify
sign = signer(scheme.sign)
_VOLATILE = ("$.meta.attempt",)
events = one_event(
    id=first(field("$.data.id"), body_digest(*_VOLATILE)),
    type=first(field("$.data.event_type"), field("$.CallStatus"), fixed("unknown")),
    account=first(
        field("$.data.payload.connection_id"),
        field("$.data.payload.messaging_profile_id"),
        field("$.AccountSid"),
    ),
    occurred_at=field("$.data.occurred_at"),
    read=any_body,
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("$.data.id"),
    tolerance=scheme.tolerance,
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://portal.telnyx.com",
)
