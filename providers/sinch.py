"""Sinch signs Conversation and SMS events `<body>.<nonce>.<time>` with HMAC-SHA256, in base64; Numbers otherwise.

Numbers events are signed with HMAC-SHA1 of the body, in hex, in `X-Sinch-Signature`. The secret is that of the
webhook (or of the Numbers callback), as text. Voice and Verification sign with the application's key and are not
taken. The id is that of the message or event; a delivery report repeats the message's id, so its status is part of
it, and its time, as a message may switch channels more than once. The type is the trigger, or what the callback
holds. Sinch does not say whether an event that is sent again is signed anew, so a day old is not stale.

https://developers.sinch.com/docs/conversation/callbacks/#validating-callbacks
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, kit

_HEADER = "x-sinch-webhook-signature"
scheme = kit.Hmac(
    header=_HEADER,
    encoding="base64",
    signed=f"{{body}}.{{header:{_HEADER}-nonce}}.{{timestamp}}",
    timestamp=kit.Timestamp(header=f"{_HEADER}-timestamp", tolerance=kit.days(1)),
)
_numbers = kit.Hmac(header="x-sinch-signature", hash="sha1")
sign = kit.signer(scheme.sign, event_id=f"{_HEADER}-nonce")
_report = "$.message_delivery_report"


def _part(view: kit.EventView) -> object:
    """Return the name of the callback's one object: `message`, `message_delivery_report`; its envelope is texts."""
    held = view.data.items() if isinstance(view.data, dict) else ()
    return next((name for name, value in held if isinstance(value, dict)), None)


_status = kit.join(kit.field(f"{_report}.message_id"), kit.field(f"{_report}.status"))
events = kit.one_event(
    id=kit.or_body(kit.join(_status, "$.event_time"), _status, "$.message.id", "$.event.id", "$.eventId"),
    type=kit.first(
        "$.trigger", "$.eventType", "$.type", kit.Extractor(_part, "the part's name"), kit.fixed("callback")
    ),
    account=kit.first("$.project_id", "$.projectId", "$.app_id"),
    occurred_at=kit.first("$.event_time", "$.accepted_time", "$.timestamp"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the scheme of the header that was sent. Raises: Rejected."""
    is_numbers = "x-sinch-signature" in delivery.headers and _HEADER not in delivery.headers
    (_numbers if is_numbers else scheme).verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.message_delivery_report.message_id + $.message_delivery_report.status",
        "$.message.id",
        "$.event.id",
        "$.eventId",
    ),
    setup_url="https://dashboard.sinch.com",
)
