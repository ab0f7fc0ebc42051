"""Retell signs `<body><ms>` with HMAC-SHA256, in hex: `x-retell-signature: v=<ms>,d=<hex>`.

The key is the API key that has the webhook badge. There is no event id: it is the event and the call,
`call_ended:call_1`, for what happens to a call once, and the body's fingerprint for what happens more often
(`transcript_updated`). The account is the agent. Three retries.

https://docs.retellai.com/features/secure-webhook
"""

from datetime import timedelta

from hookonce.providers.kit import (
    EventView,
    Extractor,
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
    header="x-retell-signature", key="d", signed="{body}{timestamp}", timestamp=Timestamp(key="v", unit="ms")
)
verify = scheme.verify
sign = signer(scheme.sign)
_ONCE = ("started", "ended", "analyzed")
_about = first(field("$.call.call_id"), field("$.chat.chat_id"))


def _once(view: EventView) -> object:
    event = field("$.event").get(view)
    return event if isinstance(event, str) and event.endswith(_ONCE) else None


events = one_event(
    id=first(join(Extractor(_once, "$.event"), _about), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=first(field("$.call.agent_id"), field("$.chat.agent_id")),
    occurred_at=first(field("$.call.end_timestamp"), field("$.call.start_timestamp")),
)


def sample(event_id: str, kind: str) -> bytes:
    """A call of that id and event of that type."""
    return b'{"event":"%b","call":{"call_id":"%b"}}' % (kind.encode(), event_id.encode())


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by(
        "$.event + $.call.call_id",
        "$.event + $.chat.chat_id",
        "body",
        because="a transcript that has changed is another body",
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    sample=sample,
    setup_url="https://dashboard.retellai.com",
)
