"""Nylas (v3) signs the body with HMAC-SHA256, in hex, in `X-Nylas-Signature`.

The URL is probed once by GET with a `challenge`, which goes back as it came and proves nothing. The id is `$.id`, the
same on every retry, where `$.webhook_delivery_attempt` counts the attempts. The account is the grant, or the
application. With compressed delivery the signature is over the gzip bytes: switch it off. Two retries.

https://developer.nylas.com/docs/v3/notifications/
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

_VOLATILE = ("$.webhook_delivery_attempt",)
events = kit.one_event(
    id=kit.or_body("$.id", without=_VOLATILE),
    type=kit.or_unknown("$.type"),
    account=kit.first("$.data.grant_id", "$.data.object.grant_id", "$.data.application_id"),
    occurred_at="$.time",
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give a challenge back; None for anything else."""
    return kit.echo(kit.query_parameter(delivery, "challenge"))


sender = kit.Sender(
    scheme=kit.Hmac(header="x-nylas-signature"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.id"),
    volatile=_VOLATILE,
    setup_url="https://dashboard-v3.nylas.com",
)
