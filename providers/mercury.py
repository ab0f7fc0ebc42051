"""Mercury signs `<t>.<body>` with HMAC-SHA256, in hex, in a header like `t=1767225600,v1=…`.

The secret is handed out in base64. Most who verify it sign with the text as it is, some with what it decodes to,
and Mercury's page does not settle it: so either is accepted, as both are known to nobody but the two of you. The id
is `$.id`; the type is what changed and how (`transaction.update`). The body is a merge patch: fetch the rest by
`$.resourceId`. The time may be off by five minutes.

https://docs.mercury.com/reference/webhooks
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
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

_time = Timestamp(key="t")
scheme = Hmac(header="mercury-signature", key="v1", signed="{timestamp}.{body}", timestamp=_time)
_decoded = Hmac(
    header="mercury-signature",
    key="v1",
    signed="{timestamp}.{body}",
    timestamp=_time,
    secret="base64",  # noqa: S106  a codec's name
)
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(join(field("$.resourceType"), field("$.operationType"), by="."), fixed("unknown")),
    occurred_at=field("$.occurredAt"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with the text or the bytes of a secret. Raises: Rejected."""
    try:
        scheme.verify(delivery, secrets, now)
    except Rejected as error:
        if error.reason is not Reason.BAD_SIGNATURE:
            raise
        try:
            _decoded.verify(delivery, secrets, now)
        except Rejected as other:
            raise (error if other.reason is Reason.NO_SECRET else other) from None


sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.id", "body", because="every event of Mercury's has an id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://app.mercury.com/settings/webhooks",
)
