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

from hookonce.providers import Delivery, Reply, kit

_header = kit.Token(header="authorization", prefix="Bearer ")
_query = kit.Token(query="access_token")
sign = kit.signer(_header.sign)
_structured = kit.many_events(
    items="$",
    id=kit.scoped("$.source", "$.id"),
    type="$.type",
    account="$.source",
    occurred_at="$.time",
)
_binary = kit.one_event(
    id=kit.scoped("header ce-source", "header ce-id"),
    type="header ce-type",
    account="header ce-source",
    occurred_at=kit.first("header ce-time"),
    read=kit.any_body_or_none,
)
events = kit.one_of_two(_structured, _binary, when=lambda delivery: "ce-id" in delivery.headers)
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


sender = kit.Sender(
    proof=_header.proof + _query.proof,
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon="whoever sends decides",
    identity=kit.told_apart_by("header ce-source + header ce-id", "$.source + $.id", "$[*].source + $[*].id"),
    check_secret=_header.check_secret,
    setup_url="https://cloudevents.io",
)
