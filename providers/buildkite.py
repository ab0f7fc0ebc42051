"""Buildkite signs `<timestamp>.<body>` with HMAC-SHA256, in hex, or sends the token itself: as the webhook is set.

The key of the signature is that same token. A token says nothing about the body, so this module counts as
unsigned as a whole; choose the signature. There is no id: it is made of the event, the build or job, and its
state. What else the body tells may be later than the event.

https://buildkite.com/docs/apis/webhooks/pipelines
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from providers import Delivery
from providers.kit import (
    Hmac,
    Timestamp,
    Token,
    body_digest,
    field,
    first,
    fixed,
    header,
    joined,
    one_event,
    signer,
)

_token = Token(header="x-buildkite-token")
scheme = Hmac(
    header="x-buildkite-signature",
    key="signature",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="timestamp"),
)
sign, CHECK, TOLERANCE = signer(scheme.sign, type="x-buildkite-event"), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(
        joined(field("$.event"), field("$.job.id"), field("$.job.state")),
        joined(field("$.event"), field("$.build.id"), field("$.build.state")),
        body_digest(),
    ),
    type=first(field("$.event"), header("x-buildkite-event"), fixed("unknown")),
    account=field("$.pipeline.id"),
)
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://buildkite.com/organizations/~/services"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its signature if it has one, by its token otherwise. Raises: Rejected."""
    only_token = "x-buildkite-token" in delivery.headers and "x-buildkite-signature" not in delivery.headers
    (_token if only_token else scheme).verify(delivery, secrets, now)
