"""Hygraph signs a JSON object that holds the body as a string, with HMAC-SHA256: `sign=<base64>, env=<name>, t=<ms>`.

The object is `{"Body": …, "EnvironmentName": env, "TimeStamp": t}` as JavaScript writes it. The time is in ms
(`@hygraph/utils`). There is no id, so the body is known by its fingerprint; the type is `$.operation`.

https://hygraph.com/docs/api-reference/basics/webhooks
"""

import json
from datetime import datetime, timedelta
from typing import Unpack

from providers import Delivery, Reason, Rejected
from providers.kit import Hmac, Said, Timestamp, body_digest, field, first, fixed, one_event, signer
from providers.kit.lists import pairs

_HEADER = "gcms-signature"


def _signed(delivery: Delivery, time: bytes) -> bytes:
    found, _ = pairs(delivery.headers.get(_HEADER, ""), ",", "env", "")
    if not found:
        raise Rejected(Reason.BAD_HEADER, f"header {_HEADER} has no env=")
    try:
        held = {"Body": delivery.body.decode(), "EnvironmentName": found[0], "TimeStamp": int(time)}
    except ValueError:
        raise Rejected(Reason.BAD_BODY, "the body is not UTF-8, or the time no number") from None
    return json.dumps(held, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


scheme = Hmac(
    header=_HEADER, key="sign", encoding="base64", signed=_signed, timestamp=Timestamp(key="t", unit="any")
)
verify, CHECK, TOLERANCE = scheme.verify, scheme.check_secret, scheme.tolerance
events = one_event(id=body_digest(), type=first(field("$.operation"), fixed("unknown")))
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.hygraph.com"


def _sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:
    told: Said = {**said, "headers": {_HEADER: "env=master"}}
    time, _, signature = scheme.sign(body, secret, now, **told)[_HEADER].partition(",")
    return {_HEADER: f"{signature}, env=master, {time}"}


sign = signer(_sign)
