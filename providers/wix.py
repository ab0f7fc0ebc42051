"""Wix sends a token (JWT, RS256) as the whole body; what happened is JSON in JSON in it.

The secret is the app's public key, in PEM or (as Wix's SDK takes it, too) that in base64. The claim `data` is
text with `eventType`, `instanceId` and another text `data`, both of which are read here. The id is the innermost
`id`; events that have none are known by their content. Wix waits 1.25 s and tries 12 times in two days.

https://dev.wix.com/docs/build-apps/develop-your-app/api-integrations/events-and-webhooks/about-webhooks
"""

import json
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Unpack

from providers import Delivery, Reason, Rejected
from providers.kit import Said, digest, field, first, fixed, in_body, one_event, parse_json
from providers.kit.jws import make
from providers.kit.jwt import Jwt

scheme = Jwt(header="", algorithms=("RS256",), needs=("exp",), leeway=timedelta(seconds=10))
verify, sign, CHECK, TOLERANCE = scheme.verify, in_body.sign, scheme.check_secret, scheme.tolerance


def _read(delivery: Delivery) -> dict[str, Any]:
    """What the token says, its inner texts read. Raises: Rejected(bad_body)."""
    said = scheme.token(delivery).claims.get("data")
    data = parse_json(said) if isinstance(said, str) else said
    if not isinstance(data, dict):
        raise Rejected(Reason.BAD_BODY, "the token has no data")
    inner = data.get("data")
    with suppress(Rejected):
        data["data"] = parse_json(inner) if isinstance(inner, str) else inner
    return data


events = one_event(
    id=first(field("$.data.id"), digest(field("$.eventType"), field("$.instanceId"), field("$.data"))),
    type=first(field("$.eventType"), fixed("unknown")),
    account=field("$.instanceId"),
    occurred_at=field("$.data.eventTime"),
    read=_read,
)
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://manage.wix.com/account/custom-apps"


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """The token that Wix would send of `body`. Raises: ValueError for a key that can't sign."""
    given = in_body.said_in(body)
    data = {
        "eventType": said.get("type") or "test",
        "instanceId": "hookonce",
        "data": body.decode("utf-8", "replace"),
    }
    if isinstance(given, dict) and "eventType" in given:
        data |= given | {"data": json.dumps(given.get("data"))}
    token = make({**scheme.claims(body, now), "data": json.dumps(data)}, secret, "RS256")
    return Delivery("POST", said.get("url", ""), {"content-type": "text/plain"}, token.encode())
