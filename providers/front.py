"""Front signs `<time>:<body>` with HMAC-SHA256, in base64; the key is the application's.

These are the webhooks of applications. Those of rules sign the body alone, with HMAC-SHA1 in base64 under the
API's secret, and send no time. The id is `$.payload.id`, of a rule `$.id`, the account the one that
authorized the application. The URL is probed with `X-Front-Challenge`, which goes back as it came, signed or
not: there is nothing in it.

https://dev.frontapp.com/docs/application-webhooks
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from providers import Delivery, Reply
from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer
from providers.kit.probing import json_reply

scheme = Hmac(
    header="x-front-signature",
    encoding="base64",
    signed="{timestamp}:{body}",
    timestamp=Timestamp(header="x-front-request-timestamp", unit="any"),
)
sign, CHECK, TOLERANCE = signer(scheme.sign), scheme.check_secret, scheme.tolerance
_rule = Hmac(header="x-front-signature", hash="sha1", encoding="base64")
events = one_event(
    id=first(field("$.payload.id"), field("$.id"), body_digest()),
    type=first(field("$.type"), field("$.payload.type"), fixed("unknown")),
    account=field("$.authorization.id"),
    occurred_at=first(field("$.payload.emitted_at"), field("$.emitted_at")),
)
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://dev.frontapp.com/docs/application-webhooks"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed the way of an application, or of a rule. Raises: Rejected."""
    is_rule = "x-front-signature" in delivery.headers and "x-front-request-timestamp" not in delivery.headers
    (_rule if is_rule else scheme).verify(delivery, secrets, now)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give a challenge back; None for anything else."""
    challenge = delivery.headers.get("x-front-challenge")
    return json_reply({"challenge": challenge}) if challenge and delivery.method == "POST" else None
