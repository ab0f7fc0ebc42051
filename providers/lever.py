"""Lever signs `<token><triggeredAt>`, two fields of the body, with HMAC-SHA256, in hex; the rest is not signed.

The signature is `$.signature`, the key the signature token of the webhook. What else the body says could be
anyone's who has seen a delivery, so a handler should fetch the candidate it names. The id is `$.id`; an older
delivery without one is known by its contents. Lever tries five more times, ever more slowly, and how long is not
said, so the age of `triggeredAt` decides nothing.

https://hire.lever.co/developer/documentation#webhooks
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

scheme = kit.Hmac(header="signature")  # a field of the body, which `verify` reads
_DIGITS: Final = 13
"""Of a time in milliseconds, until the year 2286."""
sign = kit.signature_in_body.sign
events = kit.one_event(
    id=kit.first("$.id", kit.data_digest("$.token", "$.signature")),
    type=kit.or_unknown("$.event"),
    occurred_at="$.triggeredAt",
)


def _signed(data: Any) -> bytes:  # noqa: ANN401  any JSON
    """Return the signed text. Raises: Rejected(bad_body)."""
    token, at = (data.get("token"), data.get("triggeredAt")) if isinstance(data, dict) else (None, None)
    if not isinstance(token, str) or isinstance(at, bool) or not isinstance(at, int):
        raise Rejected(Reason.BAD_BODY, "the body lacks the token or triggeredAt that Lever signs")
    return f"{token}{at}".encode("utf-8", "surrogatepass")


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if its token and time are signed with one of `secrets`. Raises: Rejected."""
    data = kit.json_body(delivery)
    scheme.expect(data.get("signature") if isinstance(data, dict) else None, _signed(data), secrets)
    if (
        not 0 < data["triggeredAt"] < 10**_DIGITS <= 10 * data["triggeredAt"]
    ):  # or the token's digits could be its
        raise Rejected(Reason.BAD_BODY, "triggeredAt is not in milliseconds")


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """Return the delivery that Lever would send with `body`, signed as of `now`."""
    said = kit.json_or_empty(body)
    data = dict(said) if isinstance(said, dict) else {}
    token, at = data.get("token"), data.get("triggeredAt")
    data["token"] = token if isinstance(token, str) else kit.made_id(body).replace("-", "")
    data["triggeredAt"] = at if type(at) is int and len(str(at)) == _DIGITS else int(now.timestamp() * 1000)
    data["signature"] = scheme.signature(_signed(data), secret)
    return kit.as_json(data, **options)


sender = kit.Sender(
    proof=("$.signature", "$.token"),
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    signed_message=lambda delivery: _signed(kit.json_body(delivery)),
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.id", "$.triggeredAt"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://hire.lever.co/settings/integrations",
)
