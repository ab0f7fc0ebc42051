"""Mercury signs `<t>.<body>` with HMAC-SHA256, in hex, in a header like `t=1767225600,v1=…`.

The secret is handed out in base64. Most who verify it sign with the text as it is, some with what it decodes to,
and Mercury's page does not settle it: so either is accepted, as both are known to nobody but the two of you. The id
is `$.id`; the type is what changed and how (`transaction.update`). The body is a merge patch: fetch the rest by
`$.resourceId`. The time may be off by five minutes.

https://docs.mercury.com/reference/webhooks
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, Reason, Rejected, kit

_time = kit.Timestamp(key="t")
scheme = kit.Hmac(header="mercury-signature", key="v1", signed="{timestamp}.{body}", timestamp=_time)
_decoded = kit.Hmac(
    header="mercury-signature", key="v1", signed="{timestamp}.{body}", timestamp=_time, secret="base64"
)
events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown(kit.join("$.resourceType", "$.operationType", by=".")),
    occurred_at="$.occurredAt",
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


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.id", "body", because="every event of Mercury's has an id"),
    setup_url="https://app.mercury.com/settings/webhooks",
)
