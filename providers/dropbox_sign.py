"""Dropbox Sign signs `<event_time><event_type>` with HMAC-SHA256, in hex, and nothing else of the body.

All three are in `$.event`; the JSON is the field `json` of a multipart form. The key is the API key. There is
no id: it is made of the signature, the request, and the signer it is about; the latter two are not signed. The
answer must hold `Hello API Event Received`, or Dropbox Sign comes again and in the end switches the URL off.

https://developers.hellosign.com/docs/events/walkthrough
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, Reply, kit

scheme = kit.Hmac(header="event_hash")
_TIME: Final = re.compile("[0-9]{1,16}")
_KIND: Final = re.compile("[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_form = kit.json_in_form("json")


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever Dropbox Sign sent
    if delivery.body.startswith(b"--"):
        return kit.read_once(
            delivery, "json in multipart", lambda body: kit.parse_json(kit.multipart.part_of(body, "json"))
        )
    is_json = delivery.body.lstrip()[:1] == b"{"
    return kit.json_body(delivery) if is_json else _form(delivery)


_hash = kit.field("$.event.event_hash")
_request = kit.field("$.signature_request.signature_request_id")
_signer = kit.field("$.event.event_metadata.related_signature_id")
_template = kit.field("$.template.template_id")
_fax = kit.field("$.fax.fax_id")
_changed = kit.field("$.account.account_id")
_for = kit.field("$.event.event_metadata.reported_for_account_id")
events = kit.one_event(
    id=kit.first(
        kit.join(_hash, _request, _signer),
        kit.join(_hash, _request),
        *(kit.join(_hash, what) for what in (_template, _fax, _changed)),
        _hash,
    ),
    type="$.event.event_type",
    account=kit.first("$.account_guid", "$.client_id", _for),
    occurred_at="$.event.event_time",
    read=_read,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if the signature in its body fits the time and type there. Raises: Rejected."""
    event = kit.json_paths.find(_read(delivery), ("event",))
    event = event if isinstance(event, dict) else {}
    scheme.expect(event.get("event_hash"), _message(event), secrets)
    time, kind = (kit.json_paths.find_text(event, name) for name in ("event_time", "event_type"))
    if not (_TIME.fullmatch(time) and _KIND.fullmatch(kind)):  # nothing is between them, so each has its form
        raise Rejected(Reason.BAD_BODY, "event_time is not in digits, or event_type not a name")


def _message(event: dict[str, Any]) -> bytes:
    texts = [kit.json_paths.find_text(event, name) for name in ("event_time", "event_type")]
    return "".join(texts).encode("utf-8", "surrogatepass")


def _signed(delivery: Delivery) -> bytes:
    """Return what was signed. Raises: Rejected."""
    event = kit.json_paths.find(_read(delivery), ("event",))
    return _message(event if isinstance(event, dict) else {})


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """Return the delivery that Dropbox Sign would send: `body`, a form or its JSON, with a signature in it."""
    data = _read(Delivery("POST", "", {}, body))
    given = data.get("event", {}) if isinstance(data, dict) else None
    if not isinstance(given, dict):
        raise ValueError("the body is not an object whose event, if it has one, is an object")  # noqa: TRY004  for the operator
    event = {"event_time": str(int(now.timestamp())), "event_type": "callback_test", **given}
    event["event_hash"] = scheme.signature(_message(event), secret)
    kind, form = kit.multipart.one_field("json", json.dumps({**data, "event": event}).encode())
    return Delivery("POST", options.get("url", ""), {"content-type": kind}, form)


sign = kit.headers_of(deliver)
sender = kit.Sender(
    proof=("$.event.event_hash", "$.json.event.event_hash"),
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    signed_message=_signed,
    retry_horizon=kit.days(3),
    disables_after="several failures",
    identity=kit.told_apart_by("$.event.event_hash", "$.json.event.event_hash"),
    accepted=Reply(body=b"Hello API Event Received"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    mode=kit.mode("$.signature_request.test_mode", live=(False,)),
    setup_url="https://app.hellosign.com/home/myAccount#api",
)
