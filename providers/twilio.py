"""Twilio signs its URL and the form's fields with HMAC-SHA1, in base64; of JSON only the URL, with the body's hash.

The key is the Auth Token; where `X-Twilio-Webhooks-Signature-Settings` names HMAC_SHA256 it is a shared key. The
URL is the public one, query included; with and without its port, as in Twilio's SDKs. Of JSON the URL has the
hash, `bodySHA256=`. The id is `I-Twilio-Idempotency-Token`, which is not signed, or the message, call or recording
with its status; what a call asks while it is in progress is known by its fingerprint. Event Streams are lists of
events with ids of their own. The answer is TwiML that does nothing. Retries are off unless the URL asks for them.

https://www.twilio.com/docs/usage/webhooks/webhooks-security
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import Final, Unpack

from providers import Delivery, Event, Reason, Rejected, Reply
from providers.kit import FORM, Hmac, Said, form_body, json_body
from providers.kit.events import many_events, one_event
from providers.kit.fields import body_digest, field, first, fixed, header, joined, only_if
from providers.kit.signing import headers_of
from providers.kit.urls import parameter, verify_at_any_port, with_parameter

_old = Hmac(header="x-twilio-signature", hash="sha1", encoding="base64", signed="{url}{params}")
_new = Hmac(header="x-twilio-signature", encoding="base64", signed="{url}{params}")
MAX_BODY = 1 << 20  # it is parsed before it is known to be genuine
CHECK = _old.check_secret
ACCEPTED = Reply(body=b"<Response/>", content_type="text/xml; charset=utf-8")
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=1)
SIGNS_URL = True
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
sample = _one.sample


def events(delivery: Delivery) -> list[Event]:
    """The events of a verified `delivery`. Raises: Rejected."""
    return (_many if delivery.body[:1] == b"[" else _one)(delivery)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets` under its URL. Raises: Rejected."""
    named = _SETTINGS.fullmatch(delivery.headers.get("x-twilio-webhooks-signature-settings", ""))
    scheme = _new if named and named[1].upper() == "HMAC_SHA256" else _old
    given = parameter(delivery.url, _HASH)
    signed = delivery if given is None else replace(delivery, body=b"")
    verify_at_any_port(scheme.verify, signed, secrets, now)
    right = sha256(delivery.body).hexdigest().encode()
    if given is not None and not compare_digest(right, given.encode("utf-8", "surrogatepass")):
        raise Rejected(Reason.BAD_SIGNATURE, "the body is not the one whose hash is in the URL")


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """What Twilio would send: a form, or JSON with its hash in the URL."""
    url = said.get("url", "")
    if body[:1] not in {b"{", b"["}:
        return Delivery("POST", url, {"content-type": FORM} | _old.sign(body, secret, now, url=url), body)
    url = with_parameter(url, _HASH, sha256(body).hexdigest())
    headers = {"content-type": "application/json"} | _old.sign(b"", secret, now, url=url)
    return Delivery("POST", url, headers, body)


sign = headers_of(deliver)
