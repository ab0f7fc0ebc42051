"""Retell signs `<body><ms>` with HMAC-SHA256, in hex: `x-retell-signature: v=<ms>,d=<hex>`.

The key is the API key that has the webhook badge. There is no event id: it is the event and the call,
`call_ended:call_1`, for what happens to a call once, and the body's fingerprint for what happens more often
(`transcript_updated`, `transfer_started`). The account is the agent. Three retries.

https://docs.retellai.com/features/secure-webhook
"""

from hookonce.providers import kit

_ONCE = ("started", "ended", "analyzed")
_about = kit.first("$.call.call_id", "$.chat.chat_id")


def _once(view: kit.EventView) -> object:
    event = kit.field("$.event").get(view)
    happens_once = isinstance(event, str) and event.startswith(("call_", "chat_")) and event.endswith(_ONCE)
    return event if happens_once else None


events = kit.one_event(
    id=kit.or_body(kit.join(kit.Extractor(_once, "$.event"), _about)),
    type=kit.or_unknown("$.event"),
    account=kit.first("$.call.agent_id", "$.chat.agent_id"),
    occurred_at=kit.first("$.call.end_timestamp", "$.call.start_timestamp"),
)


def sample(event_id: str, kind: str) -> bytes:
    """A call of that id and event of that type."""
    return b'{"event":"%b","call":{"call_id":"%b"}}' % (kind.encode(), event_id.encode())


sender = kit.Sender(
    scheme=kit.Hmac(
        header="x-retell-signature",
        key="d",
        signed="{body}{timestamp}",
        timestamp=kit.Timestamp(key="v", unit="ms"),
    ),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by(
        "$.event + $.call.call_id",
        "$.event + $.chat.chat_id",
        "body",
        because="a transcript that has changed is another body",
    ),
    setup_url="https://dashboard.retellai.com",
)
