"""Paddle signs `<ts>:<body>` with HMAC-SHA256, in hex: `Paddle-Signature: ts=…;h1=…`.

There are several `h1` while a secret is rotated; the whole secret (`pdl_ntfset_…`) is the key. The id is
`$.event_id`; `$.notification_id` is the delivery's, and a replay has a new one. Paddle's SDKs allow 5 seconds
between signing and checking, and so does this module: option `tolerance` (seconds) for hosts whose requests
queue. Sixty tries in three days.

https://developer.paddle.com/webhooks/signature-verification
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hookonce.providers.kit import (
    Configured,
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.registry.options import Options

events = one_event(
    id=first(field("$.event_id"), body_digest("$.notification_id")),
    type=first(field("$.event_type"), fixed("unknown")),
    occurred_at=field("$.occurred_at"),
)


def configure(options: Mapping[str, Any]) -> Configured:
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
    return Configured(
        verify=scheme.verify,
        sign=signer(scheme.sign),
        events=events,
        sender=Sender(
            id_is_signed=True,
            retry_horizon=timedelta(days=3),
            identity=told_apart_by("$.event_id"),
            tolerance=scheme.tolerance,
            volatile=("$.notification_id",),
            check_secret=scheme.check_secret,
            setup_url="https://vendors.paddle.com/notifications-v2",
        ),
    )
