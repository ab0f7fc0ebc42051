"""EasyPost signs the body with HMAC-SHA256, in hex behind `hmac-sha256-hex=`.

The secret is brought to Unicode's form NFKD first, as EasyPost's SDK does: it matters for accents. The id is
`$.id`, the type `$.description`. The event as it is sent tells how far its own delivery has come, so that part
differs between attempts.

https://docs.easypost.com/guides/webhooks-guide
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Unpack
from unicodedata import normalize

from hookonce.providers import Delivery, kit

scheme = kit.Hmac(header="x-hmac-signature", prefix="hmac-sha256-hex=")
_VOLATILE = ("$.pending_urls", "$.completed_urls", "$.status", "$.updated_at")
events = kit.one_event(
    id=kit.or_body("$.id", without=_VOLATILE),
    type=kit.or_unknown("$.description"),
    account="$.user_id",
    occurred_at="$.created_at",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets`. Raises: Rejected."""
    scheme.verify(delivery, [normalize("NFKD", secret) for secret in secrets], now)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    return scheme.sign(body, normalize("NFKD", secret), now, **options)


sign = kit.signer(_sign)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by("$.id"),
    volatile=_VOLATILE,
    mode=kit.mode("$.mode", live=("production",)),
    subject=kit.about(entity=("$.result.object", "$.result.id"), version="$.created_at"),
    setup_url="https://www.easypost.com/account/webhooks-and-events",
)
