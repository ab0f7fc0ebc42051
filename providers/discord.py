"""Discord signs `<time><body>` with the application's Ed25519 key, in hex; interactions and webhook events alike.

The secret is the application's public key, in hex. An interaction has an id (`$.id`) and a number for a type;
an event has neither, so its id is made of the application, its type, its time and its data. Discord probes
the URL with a PING, and with bad signatures besides: each must be a 401. Events are answered 204 and retried
for ten minutes; interactions are not retried, and want an answer of their own within 3 s, which an inbox
can't give.

https://docs.discord.com/developers/events/webhook-events
"""

from collections.abc import Sequence
from datetime import timedelta

from hookonce.providers import Delivery, Reason, Rejected, Reply
from hookonce.providers.kit import (
    Sender,
    Timestamp,
    digest,
    field,
    first,
    one_event,
    signer,
    told_apart_by,
    unsigned_probe,
)
from hookonce.providers.kit.schemes.public_key_signature import Signed

scheme = Signed(
    header="x-signature-ed25519",
    algorithm="ed25519",
    encoding="hex",
    signed="{timestamp}{body}",
    timestamp=Timestamp(header="x-signature-timestamp", tolerance=timedelta(minutes=15)),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(
        field("$.id"),
        digest(
            field("$.application_id"),
            field("$.event.type"),
            field("$.event.timestamp"),
            field("$.event.data"),
        ),
    ),
    type=first(field("$.event.type"), field("$.type")),
    account=first(field("$.application_id"), field("$.guild_id")),
    occurred_at=field("$.event.timestamp"),
)
_PONG = Reply(body=b'{"type":1}', content_type="application/json")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a PING that Discord signed; None for anything else."""
    if b'"type"' not in delivery.body:
        return None
    probe = unsigned_probe(delivery)
    kind = None if probe.get("event") else probe.get("type")
    if isinstance(kind, bool) or kind not in (0, 1):
        return None
    try:
        scheme.authentic(delivery, secrets)
    except Rejected:
        return None
    return _PONG if kind == 1 else Reply(status=204)


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("$.id", "$.event.timestamp + $.event.type + $.event.data"),
    tolerance=scheme.tolerance,
    statuses={Reason.MISSING_HEADER: 401, Reason.BAD_HEADER: 401},
    accepted=Reply(status=204),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://discord.com/developers/applications",
)
