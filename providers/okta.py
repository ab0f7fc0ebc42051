"""Okta's event hooks bring a header that was configured, and sign nothing; several events come in one delivery.

The secret is the value of `Authorization`, as configured. Each event has a `uuid`, the same on every attempt.
The URL is probed by a GET with `X-Okta-Verification-Challenge`, which is sent back as JSON. Okta waits 3 s
and tries once more. Inline hooks want an answer of their own and are another thing.

https://developer.okta.com/docs/concepts/event-hooks/
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from providers import Delivery, Reply
from providers.kit import Token, field, many_events, signer, whole
from providers.kit.probing import json_reply

scheme = Token(header="authorization")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = many_events(
    items="$.data.events",
    id=field("$.uuid"),
    type=field("$.eventType"),
    account=whole("$.source"),
    occurred_at=field("$.published"),
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://help.okta.com/okta_help.htm?id=ext-event-hooks"
_PLAIN: Final = re.compile(r"[\x21-\x7e]{1,1000}")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send back the challenge of a GET; None for anything else."""
    challenge = delivery.headers.get("x-okta-verification-challenge", "")
    if delivery.method != "GET" or _PLAIN.fullmatch(challenge) is None:
        return None
    return json_reply({"verification": challenge})
