"""Nylas (v3) signs the body with HMAC-SHA256, in hex, in `X-Nylas-Signature`.

The URL is probed once by GET with a `challenge`, which goes back as it came and proves nothing. The id is
`$.id`, the same on every retry, where `$.webhook_delivery_attempt` counts. The account is the grant, or the
application. With compressed delivery the signature is over the gzip bytes: switch it off. Two retries.

https://developer.nylas.com/docs/v3/notifications/
"""

from collections.abc import Sequence
from datetime import timedelta

from providers import Delivery, Reply
from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer
from providers.kit.probing import asked, echo

scheme = Hmac(header="x-nylas-signature")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
VOLATILE = ("$.webhook_delivery_attempt",)
events = one_event(
    id=first(field("$.id"), body_digest(*VOLATILE)),
    type=first(field("$.type"), fixed("unknown")),
    account=first(field("$.data.grant_id"), field("$.data.object.grant_id"), field("$.data.application_id")),
    occurred_at=field("$.time"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://dashboard-v3.nylas.com"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give a challenge back; None for anything else."""
    return echo(asked(delivery, "challenge"))
