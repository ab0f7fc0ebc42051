"""Onfleet signs the body with HMAC-SHA512, in hex; the key is hex too and stands for bytes.

There is no id: it is made of the trigger (a number, and the type), the task or worker, and the time. The URL is
asked by GET for what it was given in `check`.

https://docs.onfleet.com/reference/webhooks
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

_trigger = kit.field("$.triggerId")
_time = kit.field("$.time")
events = kit.one_event(
    id=kit.or_body(kit.join(_trigger, "$.taskId", _time), kit.join(_trigger, "$.workerId", _time)),
    type=_trigger,
    occurred_at=_time,
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send the check back as it came; None for anything else."""
    return kit.echo(kit.query_parameter(delivery, "check"))


sender = kit.Sender(
    scheme=kit.Hmac(header="x-onfleet-signature", hash="sha512", secret="hex"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.triggerId + $.taskId + $.time", "$.triggerId + $.workerId + $.time"),
    setup_url="https://onfleet.com/dashboard#/settings",
)
