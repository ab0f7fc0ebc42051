"""Alipay (Antom, Alipay+) signs method, path, client id, time and body with RSA (SHA-256), in base64 as URLs have it.

The header is `algorithm=RSA256,keyVersion=1,signature=…`. The secret is Alipay's public key, which Antom's dashboard
shows: PEM, or its base64. There is no id: an event is its body. Alipay sends seven more times within a day unless it is
answered that all went well, in words of its own; the answer need not be signed. What its older products send, forms
with `sign` and `sign_type`, is refused.

https://docs.antom.com/ac/ams/digital_signature
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, Unpack
from urllib.parse import quote_plus, unquote

from hookonce.providers import Delivery, Reason, Rejected, kit

_HEADER = "signature"
_FORM: Final = re.compile(r"algorithm=RSA256, ?keyVersion=[1-9][0-9]*, ?(signature=.+)")
_CLIENT = {"client-id": "SANDBOX_5YC47N2ZQHJ004124"}
scheme = kit.Signed(
    header=_HEADER,
    key=_HEADER,
    algorithm="rsa-sha256",
    signed="{method} {path}\n{header:client-id}.{timestamp}.{body}",
    timestamp=kit.Timestamp(header="request-time", unit="any", tolerance=kit.days(2)),
)
events = kit.one_event(
    id=kit.body_digest(),
    type=kit.or_unknown("$.notifyType", "$.authorizationNotifyType", "$.disputeNotificationType"),
    account="header client-id",
    occurred_at=kit.first("$.notifyCreateTime", "$.paymentTime", "$.paymentCreateTime"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if Alipay signed it. Raises: Rejected."""
    found = _FORM.fullmatch(kit.header_of(delivery.headers, (_HEADER,))[1])
    if not found:
        raise Rejected(Reason.BAD_HEADER, "header signature is not of the form that Alipay sends")
    headers = {**delivery.headers, _HEADER: unquote(found[1])}
    scheme.verify(replace(delivery, headers=headers), secrets, now)


def sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    """Return what Alipay would send as headers. Raises: ValueError unless `secret` is a private key."""
    told: kit.SignOptions = {**options, "headers": {**_CLIENT, **options.get("headers", {})}}
    made = scheme.sign(body, secret, now, **told)
    signature = quote_plus(made[_HEADER].removeprefix(f"{_HEADER}="))
    return {**_CLIENT, **made, _HEADER: f"algorithm=RSA256,keyVersion=1,{_HEADER}={signature}"}


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(2),
    retries_on=kit.UNSUCCESSFUL,
    identity=kit.told_apart_by("body", because="a payment comes into each state once, and says since when"),
    tolerance=scheme.tolerance,
    accepted=kit.json_reply(
        {"result": {"resultCode": "SUCCESS", "resultStatus": "S", "resultMessage": "success"}}
    ),
    setup_url="https://dashboard.antom.com/",
)
