"""LinkedIn signs `hmacsha256=<body>` with HMAC-SHA256, in hex; the key is the app's client secret.

Some receivers report the same word before the hex in `X-LI-Signature`; it is passed over. The URL is probed every two
hours by GET with a `challengeCode`, which wants HMAC-SHA256 of it under the same secret: only plain words without `=`
get that, so no answer is the signature of a delivery. Each notification is an event, known by `notificationId`, and
is cut out into a body of its own, so `[0]` in a path is that one; what has no such list is known by its fingerprint.
The type is `$.type`. Retries every five minutes for eight hours.

https://learn.microsoft.com/en-us/linkedin/shared/api-guide/webhook-validation
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Hmac(header="x-li-signature", signed="hmacsha256={body}")
events = kit.split_events(
    pieces=lambda data: kit.cut(data, ("notifications", None)),
    id=kit.first("$.notifications[0].notificationId", kit.data_digest()),
    type=kit.or_unknown("$.type"),
    account="$.notifications[0].organizationalEntity",
    occurred_at="$.notifications[0].lastModifiedAt",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if its signature is right, with or without the word before it. Raises: Rejected."""
    bare = {name: value.removeprefix("hmacsha256=") for name, value in delivery.headers.items()}
    scheme.verify(replace(delivery, headers=bare), secrets, now)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a challenge with its proof; None for anything else. Raises: Rejected(no_secret)."""
    code = kit.query_parameter(delivery, "challengeCode")
    made = kit.proof(code, secrets, "hex") if code and "=" not in code else None
    return kit.json_reply({"challengeCode": str(code), "challengeResponse": made}) if made else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.notifications[*].notificationId", "body", because="a lead names its form and the time"
    ),
    setup_url="https://www.linkedin.com/developers/apps",
)
