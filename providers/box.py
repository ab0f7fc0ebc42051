"""Box signs `<body><BOX-DELIVERY-TIMESTAMP>` with HMAC-SHA256, in base64, once for each of two keys.

The signatures are in `BOX-SIGNATURE-PRIMARY` and `-SECONDARY`; either key may be configured, or both, and
keys can so be replaced one at a time. The time may be ten minutes off, as in Box' SDK (which takes none from
the future). What is not ASCII may be signed with its escapes (backslash u) though it was sent as it is: the
SDK tries both. The id is `$.id`; a body without one has that of the delivery, which is not signed and new for
each attempt.

https://developer.box.com/guides/webhooks/v2/signatures-v2/
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from providers import Delivery, Reason, Rejected
from providers.kit import Hmac, Timestamp, field, first, fixed, header, one_event, signer, text_of

scheme = Hmac(
    header=("box-signature-primary", "box-signature-secondary"),
    every=True,
    encoding="base64",
    signed="{body}{timestamp}",
    timestamp=Timestamp(header="box-delivery-timestamp", unit="iso", tolerance=timedelta(minutes=10)),
)
CHECK, TOLERANCE = scheme.check_secret, scheme.tolerance
sign = signer(scheme.sign, event_id="box-delivery-id")
events = one_event(
    id=first(field("$.id"), header("box-delivery-id")),
    type=first(field("$.trigger"), fixed("unknown")),
    account=first(field("$.webhook.id"), field("$.created_by.id")),
    occurred_at=field("$.created_at"),
)
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7f]")
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.box.com/developers/console"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by one of its signatures, over the body as it is or escaped. Raises: Rejected."""
    try:
        scheme.verify(delivery, secrets, now)
    except Rejected as error:
        if error.reason is not Reason.BAD_SIGNATURE or delivery.body.isascii():
            raise
        scheme.verify(replace(delivery, body=_escaped(delivery.body)), secrets, now)


def _escaped(body: bytes) -> bytes:
    r"""The JSON `body` with `\u00e9` for what is not ASCII."""
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text_of(body)).encode("ascii")
