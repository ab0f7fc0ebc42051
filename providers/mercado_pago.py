"""Mercado Pago signs `id:<data.id>;request-id:<x-request-id>;ts:<ts>;` with HMAC-SHA256; the body is not signed.

`x-signature` is `ts=…,v1=<hex>`; `data.id` is the one in the URL's query, and what was not sent is left out of
the signed text. The documentation wants the id in lower case and the SDK takes it as it came: both are tried.
The body could be anyone's, so a handler should fetch what it names. The time is not checked, as in the SDK. The
type is `$.type` (what was done is in `$.action`). The id is `$.id`; of merchant orders and subscriptions that is
the order's or the subscription's own, so action and version go with it. QR notifications are not signed and not
taken.

https://www.mercadopago.com.br/developers/en/docs/your-integrations/notifications/webhooks
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from hookonce.providers import Delivery, Reason, Rejected, kit

_data_id = kit.query("data.id")


def _signed(delivery: Delivery, time: bytes) -> bytes:
    named = (
        str(_data_id.get(kit.EventView(delivery, None, None)) or "").strip().encode("utf-8", "surrogatepass")
    )
    request = kit.octets("x-request-id", delivery.headers.get("x-request-id", "").strip())
    said = ((b"id", named), (b"request-id", request), (b"ts", time))
    return b"".join(b"%b:%b;" % pair for pair in said if pair[1])


scheme = kit.Hmac(
    header="x-signature",
    key="v1",
    signed=_signed,
    timestamp=kit.Timestamp(key="ts", unit="any", tolerance=None),
)
sign = kit.signer(scheme.sign, event_id="x-request-id")
_type = kit.field("$.type")
_told = kit.digest("$.action", "$.data", "$.date_created")
_changed = kit.join("$.id", "$.action", "$.version")
events = kit.one_event(
    id=kit.first(
        kit.when_matches(_type, "topic_.+|subscription_.+", kit.first(_changed, kit.digest("$"))),
        "$.id",
        _told,
        _data_id,
    ),
    type=kit.or_unknown(_type, "$.action", "$.topic", "query type"),
    account="$.user_id",
    occurred_at="$.date_created",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if its signature fits its URL and request id. Raises: Rejected."""
    try:
        scheme.verify(delivery, secrets, now)
    except Rejected as error:
        path, mark, named = delivery.url.partition("?")
        if error.reason is not Reason.BAD_SIGNATURE or named == named.lower():
            raise
        scheme.verify(replace(delivery, url=path + mark + named.lower()), secrets, now)


def _message(delivery: Delivery) -> bytes:
    """Return what was signed, its id in lower case."""
    path, mark, named = delivery.url.partition("?")
    return scheme.signed_message(replace(delivery, url=path + mark + named.lower()))


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    signed_message=_message,
    retry_horizon=kit.days(8),
    identity=kit.told_apart_by("$.id"),
    mode=kit.mode("$.live_mode", live=(True,)),
    setup_url="https://www.mercadopago.com.br/developers/panel/app",
)
