"""CloudEvents over HTTP: a bearer token in `Authorization`, or `access_token` in the query; nothing is signed.

All three forms are read: binary (the attributes are `ce-` headers), structured (one JSON object) and batches. Only
source and id together are unique, so the event's id is `source:id`, colons of the id escaped. The URL is probed by
OPTIONS, which asks whether `WebHook-Request-Origin` may send; every origin may, since the token decides.

https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Sender,
    Token,
    any_body_or_none,
    field,
    first,
    header,
    join,
    many_events,
    one_event,
    one_of_two,
    scoped,
    signer,
    told_apart_by,
)

_header = Token(header="authorization", prefix="Bearer ")
_query = Token(query="access_token")
sign = signer(_header.sign)
_structured = many_events(
    items="$",
    id=scoped(field("$.source"), field("$.id")),
    former=(join(field("$.source"), field("$.id")),),
    type=field("$.type"),
    account=field("$.source"),
    occurred_at=field("$.time"),
)
_binary = one_event(
    id=scoped(header("ce-source"), header("ce-id")),
    former=(join(header("ce-source"), header("ce-id")),),
    type=header("ce-type"),
    account=header("ce-source"),
    occurred_at=first(header("ce-time")),
    read=any_body_or_none,
)
events = one_of_two(_structured, _binary, when=lambda delivery: "ce-id" in delivery.headers)
_ORIGIN: Final = re.compile(r"[A-Za-z0-9.:/_-]{1,255}")
_RATE: Final = re.compile(r"[0-9]{1,9}|\*")


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it brings one of `secrets`. Raises: Rejected."""
    in_query = "authorization" not in delivery.headers and "access_token=" in delivery.url
    (_query if in_query else _header).verify(delivery, secrets, now)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Let an origin send, at the rate it asks for; None for anything but OPTIONS with an origin."""
    origin = delivery.headers.get("webhook-request-origin", "")
    if delivery.method != "OPTIONS" or _ORIGIN.fullmatch(origin) is None:
        return None
    rate = delivery.headers.get("webhook-request-rate", "")
    allowed = {"WebHook-Allowed-Rate": rate} if _RATE.fullmatch(rate) else {}
    return Reply(headers={"Allow": "POST", "WebHook-Allowed-Origin": origin, **allowed})


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=None,
    horizon_unknown="whoever sends decides",
    identity=told_apart_by("header ce-source + header ce-id", "$.source + $.id", "$[*].source + $[*].id"),
    check_secret=_header.check_secret,
    handshake=handshake,
    setup_url="https://cloudevents.io",
)
