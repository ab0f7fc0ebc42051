"""Okta's event hooks bring a header that was configured, and sign nothing; several events come in one delivery.

The secret is the value of `Authorization`, as configured; option `header` names another if that is the hook's
"authentication field". Each event has a `uuid`, the same on every attempt. The URL is probed by a GET with
`X-Okta-Verification-Challenge`, which is sent back as JSON. Okta waits 3 s and tries once more. Inline hooks want
an answer of their own and are another thing.

https://developer.okta.com/docs/concepts/event-hooks/
"""

import re
from collections.abc import Sequence
from typing import Final

from hookonce.providers import Delivery, Reply, kit

events = kit.many_events(
    items="$.data.events",
    id="$.uuid",
    type="$.eventType",
    account=kit.whole("$.source"),
    occurred_at="$.published",
)
_PLAIN: Final = re.compile(r"[\x21-\x7e]{1,1000}")


@kit.with_options("okta")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    header = given.text("header", "authorization")
    scheme = kit.Token(header=header)
    return kit.Configured(
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=False,
            retry_horizon=kit.hours(1),
            identity=kit.told_apart_by("$.data.events[*].uuid"),
            setup_url="https://help.okta.com/okta_help.htm?id=ext-event-hooks",
        ),
    )


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send back the challenge of a GET; None for anything else."""
    challenge = delivery.headers.get("x-okta-verification-challenge", "")
    if delivery.method != "GET" or _PLAIN.fullmatch(challenge) is None:
        return None
    return kit.json_reply({"verification": challenge})
