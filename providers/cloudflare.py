"""Cloudflare Stream signs `<time>.<body>` with HMAC-SHA256, in hex, in a header like `time=1767225600,sig1=…`.

There is no id: it is made of the video's and its state, which is the type (`ready`, `error`). Cloudflare Notifications
bring the secret itself in `cf-webhook-auth` and sign nothing, so this module counts as unsigned as a whole; theirs are
known by the policy, the alert and all that they say, which the second (`$.ts`) is a part of, and their type is
`$.alert_type`. A test from the dashboard says `$.text` only: the minute of receipt goes with it.

https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/
https://developers.cloudflare.com/notifications/get-started/configure-webhooks/
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    Token,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(
    header="webhook-signature", key="sig1", signed="{timestamp}.{body}", timestamp=Timestamp(key="time")
)
_token = Token(header="cf-webhook-auth")
sign = signer(scheme.sign)
events = one_event(
    id=first(
        join(field("$.uid"), field("$.status.state")),
        join(field("$.policy_id"), field("$.ts"), body_digest()),
        when_matches(field("$.ts"), ".+", body_digest()),
    ),
    undated=body_digest(),
    type=first(field("$.status.state"), field("$.alert_type"), fixed("unknown")),
    account=field("$.account_id"),
    occurred_at=first(field("$.modified"), field("$.ts")),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature if it has one, by its token otherwise. Raises: Rejected."""
    is_notification = _token.header in delivery.headers and "webhook-signature" not in delivery.headers
    (_token if is_notification else scheme).verify(delivery, secrets, now)


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.uid + $.status.state", "$.policy_id + $.ts", "$.ts", "receipt"),
    id_period=timedelta(minutes=1),
    tolerance=scheme.tolerance,
    credentials=(_token.header,),
    check_secret=scheme.check_secret,
    setup_url="https://developers.cloudflare.com/stream/manage-video-library/using-webhooks/",
)
