"""Front signs `<time>:<body>` with HMAC-SHA256, in base64; the key is the application's.

These are the webhooks of applications. Those of rules sign the body alone, with HMAC-SHA1 in base64 under the API's
secret, and send no time. The id is `$.payload.id`, for a rule `$.id`, the account the one that authorized the
application. The URL is probed with `X-Front-Challenge`, which goes back as it came, signed or not: there is nothing
in it.

https://dev.frontapp.com/docs/application-webhooks
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Hmac(
    header="x-front-signature",
    encoding="base64",
    signed="{timestamp}:{body}",
    timestamp=kit.Timestamp(header="x-front-request-timestamp", unit="any", written="ms"),
)
_rule = kit.Hmac(header="x-front-signature", hash="sha1", encoding="base64")
events = kit.one_event(
    id=kit.or_body("$.payload.id", "$.id"),
    type=kit.or_unknown("$.type", "$.payload.type"),
    account="$.authorization.id",
    occurred_at=kit.first("$.payload.emitted_at", "$.emitted_at"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed the way of an application, or of a rule. Raises: Rejected."""
    is_rule = "x-front-signature" in delivery.headers and "x-front-request-timestamp" not in delivery.headers
    (_rule if is_rule else scheme).verify(delivery, secrets, now)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give a challenge back; None for anything else."""
    challenge = delivery.headers.get("x-front-challenge")
    return kit.json_reply({"challenge": challenge}) if challenge and delivery.method == "POST" else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon="it tries three times, after pauses that its page does not name",
    disables_after="three failures",
    identity=kit.told_apart_by("$.payload.id", "$.id"),
    setup_url="https://dev.frontapp.com/docs/application-webhooks",
)
