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

from providers import Delivery
from providers.kit import Hmac, Said, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="x-hmac-signature", prefix="hmac-sha256-hex=")
CHECK = scheme.check_secret
VOLATILE = ("$.pending_urls", "$.completed_urls", "$.status", "$.updated_at")
events = one_event(
    id=first(field("$.id"), body_digest(*VOLATILE)),
    type=first(field("$.description"), fixed("unknown")),
    account=field("$.user_id"),
    occurred_at=field("$.created_at"),
)
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://www.easypost.com/account/webhooks-and-events"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets`. Raises: Rejected."""
    scheme.verify(delivery, [normalize("NFKD", secret) for secret in secrets], now)


def _sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:
    return scheme.sign(body, normalize("NFKD", secret), now, **said)


sign = signer(_sign)
