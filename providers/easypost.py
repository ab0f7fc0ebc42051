"""EasyPost signs the body with HMAC-SHA256, in hex behind `hmac-sha256-hex=`.

The secret is brought to Unicode's form NFKD first, as EasyPost's SDK does: it matters for accents. The id is
`$.id`, the type `$.description`. The event as it is sent tells how far its own delivery has come, so that part
differs between attempts.

https://docs.easypost.com/guides/webhooks-guide
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Unpack
from unicodedata import normalize

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    SignOptions,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-hmac-signature", prefix="hmac-sha256-hex=")
_VOLATILE = ("$.pending_urls", "$.completed_urls", "$.status", "$.updated_at")
events = one_event(
    id=first(field("$.id"), body_digest(*_VOLATILE)),
    type=first(field("$.description"), fixed("unknown")),
    account=field("$.user_id"),
    occurred_at=field("$.created_at"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets`. Raises: Rejected."""
    scheme.verify(delivery, [normalize("NFKD", secret) for secret in secrets], now)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    return scheme.sign(body, normalize("NFKD", secret), now, **options)


sign = signer(_sign)

sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by("$.id"),
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://www.easypost.com/account/webhooks-and-events",
)
