"""Nylas (v3) signs the body with HMAC-SHA256, in hex, in `X-Nylas-Signature`.

The URL is probed once by GET with a `challenge`, which goes back as it came and proves nothing. The id is
`$.id`, the same on every retry, where `$.webhook_delivery_attempt` counts. The account is the grant, or the
application. With compressed delivery the signature is over the gzip bytes: switch it off. Two retries.

https://developer.nylas.com/docs/v3/notifications/
"""

from collections.abc import Sequence
from datetime import timedelta

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    echo,
    field,
    first,
    fixed,
    one_event,
    query_parameter,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-nylas-signature")
verify = scheme.verify
sign = signer(scheme.sign)
_VOLATILE = ("$.webhook_delivery_attempt",)
events = one_event(
    id=first(field("$.id"), body_digest(*_VOLATILE)),
    type=first(field("$.type"), fixed("unknown")),
    account=first(field("$.data.grant_id"), field("$.data.object.grant_id"), field("$.data.application_id")),
    occurred_at=field("$.time"),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give a challenge back; None for anything else."""
    return echo(query_parameter(delivery, "challenge"))


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.id"),
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://dashboard-v3.nylas.com",
)
