"""Sumsub signs the body with HMAC, in hex, in `X-Payload-Digest`: SHA-256, SHA-1 or SHA-512, as the webhook is set up.

Which it is shows by the length; `X-Payload-Digest-Alg` says it too, but is not signed. An event is its body, with
`createdAtMs` and what the event is about; `correlationId` is the event's by Sumsub's word, and webhooks of
different types have been seen to share it. After a failure it comes again after 5 minutes, 1, 5 and 18 hours.

https://docs.sumsub.com/docs/webhooks
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit

_HEADER = "x-payload-digest"
scheme = kit.Hmac(header=_HEADER)
_by_length = {
    40: kit.Hmac(header=_HEADER, hash="sha1"),
    128: kit.Hmac(header=_HEADER, hash="sha512"),
}
events = kit.one_event(
    id=kit.body_digest(),
    type=kit.or_unknown("$.type"),
    account="$.clientId",
    occurred_at=kit.first("$.createdAtMs", "$.createdAt"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if its digest is right, by whichever hash. Raises: Rejected."""
    given = delivery.headers.get(_HEADER, "")
    _by_length.get(len(given), scheme).verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by(
        "$.createdAtMs + $.type",
        "$.createdAt + $.type",
        "body",
        because="every webhook says in milliseconds when it was made",
    ),
    mode=kit.mode("$.sandboxMode", live=(False,), absent="live"),
    setup_url="https://cockpit.sumsub.com/checkus/devSpace/webhooks",
)
