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

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    FORM,
    Hmac,
    Sender,
    SignOptions,
    body_digest,
    expect_hash,
    field,
    first,
    fixed,
    header,
    headers_of,
    join,
    json_or_form,
    many_events,
    one_event,
    one_of_two,
    query_as_form,
    told_apart_by,
    url_parameter,
    verify_at_any_port,
    when_matches,
    with_parameter,
)

_old = Hmac(header="x-twilio-signature", hash="sha1", encoding="base64", signed="{url}{params}")
_new = Hmac(header="x-twilio-signature", encoding="base64", signed="{url}{params}")
_HASH: Final = "bodySHA256"
_SETTINGS: Final = re.compile(r"(?:.*,)?\s*algorithm\s*=\s*(\w+)\s*(?:,.*)?")

_message = field("$.MessageSid")
_call = field("$.CallSid")
_sid = first(_message, _call)
_status = first(field("$.MessageStatus"), field("$.CallStatus"))
_kind = first(field("$.EventType"), fixed("onMessageAdded"))
_number = field("$.SequenceNumber")
_named = first(
    when_matches(_call, ".+", fixed("call")), when_matches(_message, ".+", fixed("message")), fixed("unknown")
)
_one = one_event(
    id=first(
        header("i-twilio-idempotency-token"),
        join(_sid, _status, _number),
        join(field("$.RecordingSid"), field("$.RecordingStatus")),
        when_matches(_status, "in-progress", body_digest()),
        join(_sid, _status),
        when_matches(_kind, "onMessageAdded", _sid),
        body_digest(),
    ),
    type=first(_status, field("$.EventType"), field("$.SmsStatus"), _named),
    account=field("$.AccountSid"),
    read=json_or_form,
)
_many = many_events(items="$", id=field("$.id"), type=field("$.type"), occurred_at=field("$.time"))
events = one_of_two(_one, _many, when=lambda delivery: delivery.body[:1] == b"[")


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets` under its URL. Raises: Rejected."""
    named = _SETTINGS.fullmatch(delivery.headers.get("x-twilio-webhooks-signature-settings", ""))
    scheme = _new if named and named[1].upper() == "HMAC_SHA256" else _old
    is_hashed = url_parameter(delivery.url, _HASH) is not None
    signed = replace(delivery, body=b"") if is_hashed else delivery
    verify_at_any_port(scheme.verify, signed, secrets, now)
    expect_hash(delivery, _HASH)


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
    """What Twilio would send: a form, or JSON with its hash in the URL."""
    kind = FORM
    params = body
    url = options.get("url", "")
    if body[:1] in {b"{", b"["}:
        kind = "application/json"
        params = b""
        url = with_parameter(url, _HASH, sha256(body).hexdigest())
    headers = {"content-type": kind} | _old.sign(params, secret, now, url=url)
    return Delivery("POST", url, headers, body)


sign = headers_of(deliver)

sender = Sender(
    id_is_signed=False,
    body_is_unsigned=False,
    signs_url=True,
    retry_horizon=timedelta(days=1),
    retries_on=(),
    identity=told_apart_by(
        "header i-twilio-idempotency-token",
        "$.MessageSid + $.MessageStatus",
        "$.CallSid + $.CallStatus + $.SequenceNumber",
        "$.MessageSid",
        "$.CallSid",
        "query MessageSid",
        "body",
        because="whatever else Twilio asks brings its own token in a header",
    ),
    methods=("POST", "GET"),
    accepted=Reply(body=b"<Response/>", content_type="text/xml; charset=utf-8"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    check_secret=_old.check_secret,
    deliver=deliver,
    decode=query_as_form,
    setup_url="https://console.twilio.com/",
)
