"""Cloudflare Stream signs `<time>.<body>` with HMAC-SHA256, in hex, in a header like `time=1767225600,sig1=…`.

There is no id: it is made of the video's and its state, which is the type (`ready`, `error`). Cloudflare Notifications
bring the secret itself in `cf-webhook-auth` and sign nothing, so this module counts as unsigned as a whole; theirs are
known by the policy, the alert and all that they say, which the second (`$.ts`) is a part of, and their type is
`$.alert_type`. A test from the dashboard says `$.text` only: the minute of receipt goes with it.

https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/
https://developers.cloudflare.com/notifications/get-started/configure-webhooks/
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit

scheme = kit.Hmac(
    header="webhook-signature", key="sig1", signed="{timestamp}.{body}", timestamp=kit.Timestamp(key="time")
)
_token = kit.Token(header="cf-webhook-auth")
events = kit.one_event(
    id=kit.first(
        kit.join("$.uid", "$.status.state"),
        kit.join("$.policy_id", "$.ts", kit.body_digest()),
        kit.when_matches("$.ts", ".+", kit.body_digest()),
    ),
    undated=kit.body_digest(),
    type=kit.or_unknown("$.status.state", "$.alert_type"),
    account="$.account_id",
    occurred_at=kit.first("$.modified", "$.ts"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature if it has one, by its token otherwise. Raises: Rejected."""
    is_notification = _token.header in delivery.headers and "webhook-signature" not in delivery.headers
    (_token if is_notification else scheme).verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.uid + $.status.state", "$.policy_id + $.ts", "$.ts", "receipt"),
    id_period=kit.minutes(1),
    credentials=(_token.header,),
    setup_url="https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/",
)
