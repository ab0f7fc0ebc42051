"""Hygraph signs a JSON object that holds the body as a string, with HMAC-SHA256: `sign=<base64>, env=<name>, t=<ms>`.

The object is `{"Body": …, "EnvironmentName": env, "TimeStamp": t}` as JavaScript writes it. The time is in ms
(`@hygraph/utils`). There is no id, and what is unpublished again says the same: the event is the body's fingerprint
and when it was signed, a minute more or less, since it is not said whether another attempt is signed anew. The type
is `$.operation`.

https://hygraph.com/docs/api-reference/basics/webhooks
"""

import json
from datetime import datetime, timedelta
from typing import Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    Attempts,
    Hmac,
    Sender,
    SignOptions,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    header_lists,
    one_event,
    signer,
    told_apart_by,
)

_HEADER = "gcms-signature"


def _signed(delivery: Delivery, time: bytes) -> bytes:
    found, _ = header_lists.pairs(delivery.headers.get(_HEADER, ""), ",", "env", "")
    if not found:
        raise Rejected(Reason.BAD_HEADER, f"header {_HEADER} has no env=")
    try:
        held = {"Body": delivery.body.decode(), "EnvironmentName": found[0], "TimeStamp": int(time)}
    except ValueError:
        raise Rejected(Reason.BAD_BODY, "the body is not UTF-8, or the time no number") from None
    return json.dumps(held, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


scheme = Hmac(
    header=_HEADER,
    key="sign",
    encoding="base64",
    signed=_signed,
    timestamp=Timestamp(key="t", unit="any", written="ms"),
)
verify = scheme.verify
events = one_event(
    id=body_digest(),
    attempts=Attempts(scheme.signed_at, within=timedelta(minutes=1)),
    former=(body_digest(),),
    type=first(field("$.operation"), fixed("unknown")),
)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    told: SignOptions = {**options, "headers": {_HEADER: "env=master"}}
    time, _, signature = scheme.sign(body, secret, now, **told)[_HEADER].partition(",")
    return {_HEADER: f"{signature}, env=master, {time}"}


sign = signer(_sign)

sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by(
        "signed period", known_from="https://hygraph.com/docs/api-reference/basics/webhooks"
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://app.hygraph.com",
)
