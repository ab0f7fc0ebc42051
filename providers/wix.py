"""Wix sends a token (JWT, RS256) as the whole body; what happened is JSON in JSON in it.

The secret is the app's public key, in PEM or (as Wix's SDK takes it, too) that in base64. The claim `data` is text
with `eventType`, `instanceId` and another text `data`, both of which are read here. The id is the innermost `id`;
events that have none are known by their content and when the token was signed: each attempt has its own, the first a
minute after the event, so what was signed within 90 seconds is one. Wix waits 1.25 s and tries 12 times in two days.

https://dev.wix.com/docs/build-apps/develop-your-app/api-integrations/events-and-webhooks/about-webhooks
"""

import json
from contextlib import suppress
from datetime import datetime
from typing import Any, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

scheme = kit.Jwt(header="", algorithms=("RS256",), needs=("exp",), leeway=kit.seconds(10))
sign = kit.signature_in_body.sign


def _read(delivery: Delivery) -> dict[str, Any]:
    """Return the claims of the token, its inner texts read. Raises: Rejected(bad_body)."""
    said = scheme.token(delivery).claims.get("data")
    data = kit.parse_json(said) if isinstance(said, str) else said
    if not isinstance(data, dict):
        raise Rejected(Reason.BAD_BODY, "the token has no data")
    inner = data.get("data")
    with suppress(Rejected):
        data["data"] = kit.parse_json(inner) if isinstance(inner, str) else inner
    return data


_content = kit.digest("$.eventType", "$.instanceId", "$.data")
_signed_at = kit.Extractor(lambda view: scheme.token(view.delivery).claims.get("iat"), "the token's iat")
events = kit.one_event(
    id="$.data.id",
    undated=_content,
    attempts=kit.Attempts(_signed_at, within=kit.seconds(90)),
    type=kit.or_unknown("$.eventType"),
    account="$.instanceId",
    occurred_at="$.data.eventTime",
    read=_read,
)


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """The token that Wix would send of `body`. Raises: ValueError for a key that can't sign."""
    given = kit.signature_in_body.json_or_empty(body)
    data = {
        "eventType": options.get("type") or "test",
        "instanceId": "hookonce",
        "data": body.decode("utf-8", "replace"),
    }
    if isinstance(given, dict) and "eventType" in given:
        data |= given | {"data": json.dumps(given.get("data"))}
    token = kit.jws.make({**scheme.claims(body, now), "data": json.dumps(data)}, secret, "RS256")
    return Delivery("POST", options.get("url", ""), {"content-type": "text/plain"}, token.encode())


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by(
        "claim data.data.id",
        "signed period",
        known_from="https://dev.wix.com/docs/build-apps/develop-your-app/api-integrations/events-and-webhooks/about-webhooks",
    ),
    setup_url="https://manage.wix.com/account/custom-apps",
)
