"""Hygraph signs a JSON object that holds the body as a string, with HMAC-SHA256: `sign=<base64>, env=<name>, t=<ms>`.

The object is `{"Body": …, "EnvironmentName": env, "TimeStamp": t}` as JavaScript writes it. The time is in ms
(`@hygraph/utils`). There is no id, and what is unpublished again says the same: the event is the body's fingerprint
and when it was signed, a minute more or less, since it is not said whether another attempt is signed anew. The type
is `$.operation`.

https://hygraph.com/docs/api-reference/basics/webhooks
"""

import json
from datetime import datetime
from typing import Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

_HEADER = "gcms-signature"


def _signed(delivery: Delivery, time: bytes) -> bytes:
    found, _ = kit.header_lists.pairs(delivery.headers.get(_HEADER, ""), ",", "env", "")
    if not found:
        raise Rejected(Reason.BAD_HEADER, f"header {_HEADER} has no env=")
    try:
        held = {"Body": delivery.body.decode(), "EnvironmentName": found[0], "TimeStamp": int(time)}
    except ValueError:
        raise Rejected(Reason.BAD_BODY, "the body is not UTF-8, or the time no number") from None
    return json.dumps(held, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


scheme = kit.Hmac(
    header=_HEADER,
    key="sign",
    encoding="base64",
    signed=_signed,
    timestamp=kit.Timestamp(key="t", unit="any", written="ms"),
)
events = kit.one_event(
    id=kit.body_digest(),
    attempts=kit.Attempts(scheme.signed_at, within=kit.minutes(1)),
    type=kit.or_unknown("$.operation"),
)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    """Sign for the environment `master`; the scheme puts the time first, Hygraph puts it last."""
    told: kit.SignOptions = {**options, "headers": {_HEADER: "env=master"}}
    time, _, signature = scheme.sign(body, secret, now, **told)[_HEADER].partition(",")
    return {_HEADER: f"{signature}, env=master, {time}"}


sign = kit.signer(_sign)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "signed period", known_from="https://hygraph.com/docs/api-reference/basics/webhooks"
    ),
    setup_url="https://app.hygraph.com",
)
