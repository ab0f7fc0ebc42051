"""Paddle signs `<ts>:<body>` with HMAC-SHA256, in hex: `Paddle-Signature: ts=…;h1=…`.

There are several `h1` while a secret is rotated; the whole secret (`pdl_ntfset_…`) is the key. The id is
`$.event_id`; `$.notification_id` is the delivery's, and a replay has a new one. Paddle's SDKs allow 5 seconds
between signing and checking, and so does this module: option `tolerance` (seconds) for hosts whose requests
queue. Sixty tries in three days.

https://developer.paddle.com/webhooks/signature-verification
"""

from collections.abc import Mapping
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer
from providers.kit.options import Options

events = one_event(
    id=first(field("$.event_id"), body_digest("$.notification_id")),
    type=first(field("$.event_type"), fixed("unknown")),
    occurred_at=field("$.occurred_at"),
)


def configure(options: Mapping[str, Any]) -> object:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "paddle_billing")
    tolerance = timedelta(seconds=given.seconds("tolerance", 5))
    given.done()
    scheme = Hmac(
        header="paddle-signature",
        key="h1",
        separator=";",
        signed="{timestamp}:{body}",
        timestamp=Timestamp(key="ts", tolerance=tolerance),
    )
    return SimpleNamespace(
        verify=scheme.verify,
        sign=signer(scheme.sign),
        events=events,
        CHECK=scheme.check_secret,
        TOLERANCE=scheme.tolerance,
        VOLATILE=("$.notification_id",),
        RETRY_HORIZON=timedelta(days=3),
        SETUP="https://vendors.paddle.com/notifications-v2",
    )
