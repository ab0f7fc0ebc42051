"""Okta's event hooks bring a header that was configured, and sign nothing; several events come in one delivery.

The secret is the value of `Authorization`, as configured; option `header` names another if that is the hook's
"authentication field". Each event has a `uuid`, the same on every attempt. The URL is probed by a GET with
`X-Okta-Verification-Challenge`, which is sent back as JSON. Okta waits 3 s and tries once more. Inline hooks want
an answer of their own and are another thing.

https://developer.okta.com/docs/concepts/event-hooks/
"""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Configured,
    Sender,
    Token,
    field,
    json_reply,
    many_events,
    signer,
    told_apart_by,
    whole,
)
from hookonce.providers.kit.registry.options import Options

events = many_events(
    items="$.data.events",
    id=field("$.uuid"),
    type=field("$.eventType"),
    account=whole("$.source"),
    occurred_at=field("$.published"),
)
_PLAIN: Final = re.compile(r"[\x21-\x7e]{1,1000}")


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "okta")
    header = given.text("header", "authorization")
    given.done()
    scheme = Token(header=header)
    return Configured(
        verify=scheme.verify,
        sign=signer(scheme.sign),
        events=events,
        sender=Sender(
            id_is_signed=False,
            body_is_unsigned=True,
            retry_horizon=timedelta(hours=1),
            identity=told_apart_by("$.data.events[*].uuid"),
            check_secret=scheme.check_secret,
            handshake=handshake,
            setup_url="https://help.okta.com/okta_help.htm?id=ext-event-hooks",
        ),
    )


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send back the challenge of a GET; None for anything else."""
    challenge = delivery.headers.get("x-okta-verification-challenge", "")
    if delivery.method != "GET" or _PLAIN.fullmatch(challenge) is None:
        return None
    return json_reply({"verification": challenge})
