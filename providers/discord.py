"""Discord signs `<time><body>` with the application's Ed25519 key, in hex; interactions and webhook events alike.

The secret is the application's public key, in hex. An interaction has an id (`$.id`) and a number for a type;
an event has neither, so its id is made of the application, its type, its time and its data. Discord probes
the URL with a PING, and with bad signatures besides: each must be a 401. Events are answered 204 and retried
for ten minutes; interactions are not retried, and want an answer of their own within 3 s, which an inbox
can't give.

https://docs.discord.com/developers/events/webhook-events
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Rejected, Reply, kit

scheme = kit.Signed(
    header="x-signature-ed25519",
    algorithm="ed25519",
    encoding="hex",
    signed="{timestamp}{body}",
    timestamp=kit.Timestamp(header="x-signature-timestamp", tolerance=kit.minutes(15)),
)
events = kit.one_event(
    id=kit.first("$.id", kit.digest("$.application_id", "$.event.type", "$.event.timestamp", "$.event.data")),
    type=kit.first("$.event.type", "$.type"),
    account=kit.first("$.application_id", "$.guild_id"),
    occurred_at="$.event.timestamp",
)
_PONG = Reply(body=b'{"type":1}', content_type="application/json")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a PING that Discord signed; None for anything else."""
    if b'"type"' not in delivery.body:
        return None
    probe = kit.unsigned_probe(delivery)
    kind = None if probe.get("event") else probe.get("type")
    if isinstance(kind, bool) or kind not in (0, 1):
        return None
    try:
        scheme.authentic(delivery, secrets)
    except Rejected:
        return None
    return _PONG if kind == 1 else Reply(status=204)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$.id", "$.event.timestamp + $.event.type + $.event.data"),
    accepted=Reply(status=204),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://discord.com/developers/applications",
)
