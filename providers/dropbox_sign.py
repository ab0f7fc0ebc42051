"""Dropbox Sign signs `<event_time><event_type>` with HMAC-SHA256, in hex, and nothing else of the body.

All three are in `$.event`; the JSON is the field `json` of a multipart form. The key is the API key. There is
no id: it is made of the signature, the request, and the signer it is about; the latter two are not signed. The
answer must hold `Hello API Event Received`, or Dropbox Sign comes again and in the end switches the URL off.

https://developers.hellosign.com/docs/events/walkthrough
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from providers import Delivery, Reply
from providers.kit import Hmac, Said, field, first, headers_of, joined, one_event, paths
from providers.kit.multipart import multipart, part_of
from providers.kit.reading import form_field, json_body, parse_json

scheme = Hmac(header="event_hash")
MAX_BODY = 1 << 20  # it is parsed before it is known to be genuine
CHECK = scheme.check_secret
ACCEPTED = Reply(body=b"Hello API Event Received")
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://app.hellosign.com/home/myAccount#api"


def _read(delivery: Delivery) -> Any:  # noqa: ANN401  whatever Dropbox Sign sent
    if delivery.body.startswith(b"--"):
        return parse_json(part_of(delivery.body, "json"))
    is_json = delivery.body.lstrip()[:1] == b"{"
    return json_body(delivery) if is_json else parse_json(form_field(delivery, "json"))


_hash, _request = field("$.event.event_hash"), field("$.signature_request.signature_request_id")
_signer, _template = field("$.event.event_metadata.related_signature_id"), field("$.template.template_id")
_fax, _changed = field("$.fax.fax_id"), field("$.account.account_id")
_for = field("$.event.event_metadata.reported_for_account_id")
events = one_event(
    id=first(
        joined(_hash, _request, _signer),
        joined(_hash, _request),
        *(joined(_hash, what) for what in (_template, _fax, _changed)),
        _hash,
    ),
    type=field("$.event.event_type"),
    account=first(field("$.account_guid"), field("$.client_id"), _for),
    occurred_at=field("$.event.event_time"),
    read=_read,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if the signature in its body fits the time and type there. Raises: Rejected."""
    event = paths.find(_read(delivery), ("event",))
    event = event if isinstance(event, dict) else {}
    scheme.expect(event.get("event_hash"), _message(event), secrets)


def _message(event: dict[str, Any]) -> bytes:
    texts = [str(event.get(name, "")) for name in ("event_time", "event_type")]
    return "".join(texts).encode("utf-8", "surrogatepass")


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """What Dropbox Sign would send: `body`, a form or its JSON, with a signature in it."""
    data = _read(Delivery("POST", "", {}, body))
    given = data.get("event", {}) if isinstance(data, dict) else None
    if not isinstance(given, dict):
        raise ValueError("the body is no object whose event, if it has one, is an object")  # noqa: TRY004  for the operator
    event = {"event_time": str(int(now.timestamp())), "event_type": "callback_test", **given}
    event["event_hash"] = scheme.signature(_message(event), secret)
    kind, form = multipart("json", json.dumps({**data, "event": event}).encode())
    return Delivery("POST", said.get("url", ""), {"content-type": kind}, form)


sign = headers_of(deliver)
