"""Twilio signs its URL and the form's fields with HMAC-SHA1, in base64; of JSON only the URL, with the body's hash.

The key is the Auth Token; where `X-Twilio-Webhooks-Signature-Settings` names HMAC_SHA256 it is a shared key. The URL
is the public one, query included (by GET it has the fields); with and without its port, as in Twilio's SDKs. Of JSON
it has the hash, `bodySHA256=`. The id is `I-Twilio-Idempotency-Token`, which is not signed, or the message, call or
recording with its status; what a call asks while it is in progress is known by its fingerprint. Event Streams are
lists of events with ids of their own. The answer is TwiML that does nothing. Retries are off unless the URL asks for
them.

https://www.twilio.com/docs/usage/webhooks/webhooks-security
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, Unpack

from providers import Delivery, Reply
from providers.kit import FORM, Hmac, Said, form_body, headers_of, json_body
from providers.kit.events import either, many_events, one_event
from providers.kit.fields import body_digest, field, first, fixed, header, joined, only_if
from providers.kit.urls import expect_hash, parameter, query_as_form, verify_at_any_port, with_parameter

_old = Hmac(header="x-twilio-signature", hash="sha1", encoding="base64", signed="{url}{params}")
_new = Hmac(header="x-twilio-signature", encoding="base64", signed="{url}{params}")
MAX_BODY = 1 << 20  # it is parsed before it is known to be genuine
CHECK = _old.check_secret
ACCEPTED = Reply(body=b"<Response/>", content_type="text/xml; charset=utf-8")
ID_IS_SIGNED, SIGNS_URL, METHODS = False, True, ("POST", "GET")
RETRY_HORIZON, opened = timedelta(days=1), query_as_form
SETUP = "https://console.twilio.com/"
_HASH: Final = "bodySHA256"
_SETTINGS: Final = re.compile(r"(?:.*,)?\s*algorithm\s*=\s*(\w+)\s*(?:,.*)?")

_message, _call = field("$.MessageSid"), field("$.CallSid")
_sid, _status = first(_message, _call), first(field("$.MessageStatus"), field("$.CallStatus"))
_kind, _number = first(field("$.EventType"), fixed("onMessageAdded")), field("$.SequenceNumber")
_named = first(
    only_if(_call, ".+", fixed("call")), only_if(_message, ".+", fixed("message")), fixed("unknown")
)
_one = one_event(
    id=first(
        header("i-twilio-idempotency-token"),
        joined(_sid, _status, _number),
        joined(field("$.RecordingSid"), field("$.RecordingStatus")),
        only_if(_status, "in-progress", body_digest()),
        joined(_sid, _status),
        only_if(_kind, "onMessageAdded", _sid),
        body_digest(),
    ),
    type=first(_status, field("$.EventType"), field("$.SmsStatus"), _named),
    account=field("$.AccountSid"),
    read=lambda delivery: json_body(delivery) if delivery.body[:1] == b"{" else form_body(delivery),
)
_many = many_events(items="$", id=field("$.id"), type=field("$.type"), occurred_at=field("$.time"))
events = either(_one, _many, when=lambda delivery: delivery.body[:1] == b"[")


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets` under its URL. Raises: Rejected."""
    named = _SETTINGS.fullmatch(delivery.headers.get("x-twilio-webhooks-signature-settings", ""))
    scheme = _new if named and named[1].upper() == "HMAC_SHA256" else _old
    is_hashed = parameter(delivery.url, _HASH) is not None
    signed = replace(delivery, body=b"") if is_hashed else delivery
    verify_at_any_port(scheme.verify, signed, secrets, now)
    expect_hash(delivery, _HASH)


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """What Twilio would send: a form, or JSON with its hash in the URL."""
    kind, params, url = FORM, body, said.get("url", "")
    if body[:1] in {b"{", b"["}:
        kind, params, url = "application/json", b"", with_parameter(url, _HASH, sha256(body).hexdigest())
    headers = {"content-type": kind} | _old.sign(params, secret, now, url=url)
    return Delivery("POST", url, headers, body)


sign = headers_of(deliver)
