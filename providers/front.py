"""Front signs `<time>:<body>` with HMAC-SHA256, in base64; the key is the application's.

These are the webhooks of applications. Those of rules sign the body alone, with HMAC-SHA1 in base64 under the
API's secret, and send no time. The id is `$.payload.id`, of a rule `$.id`, the account the one that
authorized the application. The URL is probed with `X-Front-Challenge`, which goes back as it came, signed or
not: there is nothing in it.

https://dev.frontapp.com/docs/application-webhooks
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    json_reply,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-front-signature",
    encoding="base64",
    signed="{timestamp}:{body}",
    timestamp=Timestamp(header="x-front-request-timestamp", unit="any", written="ms"),
)
sign = signer(scheme.sign)
_rule = Hmac(header="x-front-signature", hash="sha1", encoding="base64")
events = one_event(
    id=first(field("$.payload.id"), field("$.id"), body_digest()),
    type=first(field("$.type"), field("$.payload.type"), fixed("unknown")),
    account=field("$.authorization.id"),
    occurred_at=first(field("$.payload.emitted_at"), field("$.emitted_at")),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed the way of an application, or of a rule. Raises: Rejected."""
    is_rule = "x-front-signature" in delivery.headers and "x-front-request-timestamp" not in delivery.headers
    (_rule if is_rule else scheme).verify(delivery, secrets, now)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give a challenge back; None for anything else."""
    challenge = delivery.headers.get("x-front-challenge")
    return json_reply({"challenge": challenge}) if challenge and delivery.method == "POST" else None


sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(hours=1),
    disables_after="three failures",
    identity=told_apart_by("$.payload.id", "$.id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://dev.frontapp.com/docs/application-webhooks",
)
