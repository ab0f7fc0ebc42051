"""Onfleet signs the body with HMAC-SHA512, in hex; the key is hex too and stands for bytes.

There is no id: it is made of the trigger (a number, and the type), the task or worker, and the time. The URL is
asked by GET for what it was given in `check`.

https://docs.onfleet.com/reference/webhooks
"""

from collections.abc import Sequence
from datetime import timedelta

from providers import Delivery, Reply
from providers.kit import Hmac, body_digest, field, first, joined, one_event, signer
from providers.kit.probing import asked, echo

scheme = Hmac(header="x-onfleet-signature", hash="sha512", secret="hex")  # noqa: S106  a codec's name
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_trigger, _time = field("$.triggerId"), field("$.time")
events = one_event(
    id=first(
        joined(_trigger, field("$.taskId"), _time),
        joined(_trigger, field("$.workerId"), _time),
        body_digest(),
    ),
    type=_trigger,
    occurred_at=_time,
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://onfleet.com/dashboard#/settings"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send the check back as it came; None for anything else."""
    return echo(asked(delivery, "check"))
