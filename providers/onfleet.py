"""Onfleet signs the body with HMAC-SHA512, in hex; the key is hex too and stands for bytes.

There is no id: it is made of the trigger (a number, and the type), the task or worker, and the time. The URL is
asked by GET for what it was given in `check`.

https://docs.onfleet.com/reference/webhooks
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
    join,
    one_event,
    query_parameter,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-onfleet-signature", hash="sha512", secret="hex")  # noqa: S106  a codec's name
verify = scheme.verify
sign = signer(scheme.sign)
_trigger = field("$.triggerId")
_time = field("$.time")
events = one_event(
    id=first(
        join(_trigger, field("$.taskId"), _time),
        join(_trigger, field("$.workerId"), _time),
        body_digest(),
    ),
    type=_trigger,
    occurred_at=_time,
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send the check back as it came; None for anything else."""
    return echo(query_parameter(delivery, "check"))


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.triggerId + $.taskId + $.time", "$.triggerId + $.workerId + $.time"),
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://onfleet.com/dashboard#/settings",
)
