"""Paddle signs `<ts>:<body>` with HMAC-SHA256, in hex: `Paddle-Signature: ts=…;h1=…`.

There are several `h1` while a secret is rotated; the whole secret (`pdl_ntfset_…`) is the key. The id is
`$.event_id`; `$.notification_id` is the delivery's, and a replay has a new one. Paddle's SDKs allow 5 seconds
between signing and checking, and so does this module: option `tolerance` (seconds) for hosts whose requests
queue. Sixty tries in three days.

https://developer.paddle.com/webhooks/signature-verification
"""

from datetime import timedelta

from hookonce.providers import kit

events = kit.one_event(
    id=kit.first("$.event_id", kit.body_digest("$.notification_id")),
    type=kit.or_unknown("$.event_type"),
    occurred_at="$.occurred_at",
)


@kit.with_options("paddle_billing")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    tolerance = timedelta(seconds=given.seconds("tolerance", 5))
    scheme = kit.Hmac(
        header="paddle-signature",
        key="h1",
        separator=";",
        signed="{timestamp}:{body}",
        timestamp=kit.Timestamp(key="ts", tolerance=tolerance),
    )
    return kit.Configured(
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=True,
            retry_horizon=timedelta(days=3),
            identity=kit.told_apart_by("$.event_id"),
            volatile=("$.notification_id",),
            subject=kit.about(entity=("$.data.id",), version="$.occurred_at"),
            setup_url="https://vendors.paddle.com/notifications-v2",
        ),
    )
