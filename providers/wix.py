"""Wix sends a token (JWT, RS256) as the whole body; what happened is JSON in JSON in it.

The secret is the app's public key, in PEM or (as Wix's SDK takes it, too) that in base64. The claim `data` is text
with `eventType`, `instanceId` and another text `data`, both of which are read here. The id is the innermost `id`;
events that have none are known by their content and when the token was signed: each attempt has its own, the first a
minute after the event, so what was signed within 90 seconds is one. Wix waits 1.25 s and tries 12 times in two days.

https://dev.wix.com/docs/build-apps/develop-your-app/api-integrations/events-and-webhooks/about-webhooks
"""

import json
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    Attempts,
    Extractor,
    Sender,
    SignOptions,
    digest,
    field,
    first,
    fixed,
    one_event,
    parse_json,
    signature_in_body,
    told_apart_by,
    when_matches,
)
from hookonce.providers.kit.crypto.jws import make
from hookonce.providers.kit.schemes.jwt import Jwt

scheme = Jwt(header="", algorithms=("RS256",), needs=("exp",), leeway=timedelta(seconds=10))
verify = scheme.verify
sign = signature_in_body.sign


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


_content = digest(field("$.eventType"), field("$.instanceId"), field("$.data"))
_signed_at = Extractor(lambda view: scheme.token(view.delivery).claims.get("iat"), "the token's iat")
events = one_event(
    id=field("$.data.id"),
    undated=_content,
    attempts=Attempts(_signed_at, within=timedelta(seconds=90)),
    former=(when_matches(first(field("$.data.id"), fixed("none")), "none", _content),),
    type=first(field("$.eventType"), fixed("unknown")),
    account=field("$.instanceId"),
    occurred_at=field("$.data.eventTime"),
    read=_read,
)


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
    """The token that Wix would send of `body`. Raises: ValueError for a key that can't sign."""
    given = signature_in_body.json_or_empty(body)
    data = {
        "eventType": options.get("type") or "test",
        "instanceId": "hookonce",
        "data": body.decode("utf-8", "replace"),
    }
    if isinstance(given, dict) and "eventType" in given:
        data |= given | {"data": json.dumps(given.get("data"))}
    token = make({**scheme.claims(body, now), "data": json.dumps(data)}, secret, "RS256")
    return Delivery("POST", options.get("url", ""), {"content-type": "text/plain"}, token.encode())


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by(
        "claim data.data.id",
        "signed period",
        known_from="https://dev.wix.com/docs/build-apps/develop-your-app/api-integrations/events-and-webhooks/about-webhooks",
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    deliver=deliver,
    setup_url="https://manage.wix.com/account/custom-apps",
)
