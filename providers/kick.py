"""Kick signs `<message id>.<time>.<body>` with its RSA key (PKCS#1 v1.5, SHA-256), in base64.

The secret is Kick's public key, the same for everyone: https://api.kick.com/public/v1/public-key. The id is
`Kick-Event-Message-Id`, the same on every attempt and signed; the type is `Kick-Event-Type`, which is not (claims
of drops may come without, as `unknown`). Kick does not say whether a message that is sent again gets a new time, so
only what is older than its attempts could be is stale; the signed id makes it a duplicate until then.

https://docs.kick.com/events/webhook-security
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    Timestamp,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.schemes.public_key_signature import Signed

scheme = Signed(
    header="kick-event-signature",
    algorithm="rsa-sha256",
    signed="{header:kick-event-message-id}.{timestamp}.{body}",
    timestamp=Timestamp(header="kick-event-message-timestamp", unit="iso", tolerance=timedelta(days=1)),
)
verify = scheme.verify
sign = signer(
    scheme.sign, event_id="kick-event-message-id", type="kick-event-type", default_type="channel.followed"
)
events = one_event(
    id=header("kick-event-message-id"),
    type=first(header("kick-event-type"), fixed("unknown")),
    account=first(field("$.broadcaster.user_id"), header("kick-event-subscription-id")),
    occurred_at=header("kick-event-message-timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("header kick-event-message-id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://kick.com/settings/developer",
)
