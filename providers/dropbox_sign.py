"""Dropbox Sign signs `<event_time><event_type>` with HMAC-SHA256, in hex, and nothing else of the body.

All three are in `$.event`; the JSON is the field `json` of a multipart form. The key is the API key. There is
no id: it is made of the signature, the request, and the signer it is about; the latter two are not signed. The
answer must hold `Hello API Event Received`, or Dropbox Sign comes again and in the end switches the URL off.

https://developers.hellosign.com/docs/events/walkthrough
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, Reply
from hookonce.providers.kit import (
    Hmac,
    Sender,
    SignOptions,
    field,
    first,
    headers_of,
    join,
    json_body,
    json_in_form,
    json_paths,
    multipart,
    one_event,
    parse_json,
    read_once,
    told_apart_by,
)

scheme = Hmac(header="event_hash")
_TIME: Final = re.compile("[0-9]{1,16}")
_KIND: Final = re.compile("[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_form = json_in_form("json")


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever Dropbox Sign sent
    if delivery.body.startswith(b"--"):
        return read_once(
            delivery, "json in multipart", lambda body: parse_json(multipart.part_of(body, "json"))
        )
    is_json = delivery.body.lstrip()[:1] == b"{"
    return json_body(delivery) if is_json else _form(delivery)


_hash = field("$.event.event_hash")
_request = field("$.signature_request.signature_request_id")
_signer = field("$.event.event_metadata.related_signature_id")
_template = field("$.template.template_id")
_fax = field("$.fax.fax_id")
_changed = field("$.account.account_id")
_for = field("$.event.event_metadata.reported_for_account_id")
events = one_event(
    id=first(
        join(_hash, _request, _signer),
        join(_hash, _request),
        *(join(_hash, what) for what in (_template, _fax, _changed)),
        _hash,
    ),
    type=field("$.event.event_type"),
    account=first(field("$.account_guid"), field("$.client_id"), _for),
    occurred_at=field("$.event.event_time"),
    read=_read,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if the signature in its body fits the time and type there. Raises: Rejected."""
    event = json_paths.find(_read(delivery), ("event",))
    event = event if isinstance(event, dict) else {}
    scheme.expect(event.get("event_hash"), _message(event), secrets)
    time, kind = (json_paths.find_text(event, name) for name in ("event_time", "event_type"))
    if not (_TIME.fullmatch(time) and _KIND.fullmatch(kind)):  # nothing is between them, so each has its form
        raise Rejected(Reason.BAD_BODY, "event_time is not in digits, or event_type not a name")


def _message(event: dict[str, Any]) -> bytes:
    texts = [json_paths.find_text(event, name) for name in ("event_time", "event_type")]
    return "".join(texts).encode("utf-8", "surrogatepass")


def _signed(delivery: Delivery) -> bytes:
    """Return what was signed. Raises: Rejected."""
    event = json_paths.find(_read(delivery), ("event",))
    return _message(event if isinstance(event, dict) else {})


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
    """What Dropbox Sign would send: `body`, a form or its JSON, with a signature in it."""
    data = _read(Delivery("POST", "", {}, body))
    given = data.get("event", {}) if isinstance(data, dict) else None
    if not isinstance(given, dict):
        raise ValueError("the body is not an object whose event, if it has one, is an object")  # noqa: TRY004  for the operator
    event = {"event_time": str(int(now.timestamp())), "event_type": "callback_test", **given}
    event["event_hash"] = scheme.signature(_message(event), secret)
    kind, form = multipart.one_field("json", json.dumps({**data, "event": event}).encode())
    return Delivery("POST", options.get("url", ""), {"content-type": kind}, form)


sign = headers_of(deliver)

sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    signed_message=_signed,
    retry_horizon=timedelta(days=3),
    disables_after="several failures",
    identity=told_apart_by("$.event.event_hash", "$.json.event.event_hash"),
    accepted=Reply(body=b"Hello API Event Received"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    check_secret=scheme.check_secret,
    deliver=deliver,
    setup_url="https://app.hellosign.com/home/myAccount#api",
)
