"""Twilio signs its URL and the form's fields with HMAC-SHA1, in base64; of JSON only the URL, with the body's hash.

The key is the Auth Token; where `X-Twilio-Webhooks-Signature-Settings` names HMAC_SHA256 it is a shared key. The URL
is the public one, query included (by GET it has the fields); with and without its port, as in Twilio's SDKs. For JSON
the query has the body's hash, `bodySHA256=`. The id is `I-Twilio-Idempotency-Token`, which is not signed, or the
message, call or recording with its status; what a call asks while it is in progress, and what happens in a
conference, a stream or a transcription of it, is known by its fields. The type is what happened, in the word that one
subscribes to (`participant-join`, `stream-started`, `recording-completed`), else the status. Event Streams are lists
of events with ids of their own. The answer is TwiML that does nothing. Retries are off unless the URL asks for them.
Names and values are signed with nothing between: what comes again with a signature is a repeat, whatever it says.

https://www.twilio.com/docs/usage/webhooks/webhooks-security
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Final, Unpack

from hookonce.providers import Delivery, Reply, kit

_old = kit.Hmac(header="x-twilio-signature", hash="sha1", encoding="base64", signed="{url}{params}")
_new = kit.Hmac(header="x-twilio-signature", encoding="base64", signed="{url}{params}")
_HASH: Final = "bodySHA256"
_SETTINGS: Final = re.compile(r"(?:.*,)?\s*algorithm\s*=\s*(\w+)\s*(?:,.*)?")

_message = kit.field("$.MessageSid")
_call = kit.field("$.CallSid")
_status = kit.first("$.MessageStatus", "$.CallStatus")
_kind = kit.first("$.EventType", kit.fixed("onMessageAdded"))
_number = kit.field("$.SequenceNumber")
_recording = kit.field("$.RecordingStatus")
_named = kit.or_unknown(
    kit.when_matches(_call, ".+", kit.fixed("call")), kit.when_matches(_message, ".+", kit.fixed("message"))
)
_CALLS: Final = frozenset(
    {"AccountSid", "ApplicationSid", "CallSid", "OutgoingApplicationSid", "ParentCallSid", "TrunkSid"}
)
_ABOUT_ELSE: Final = re.compile(
    r".+(?:Sid|Event|EventType)|(?:Dial|Machine|Payment|Queue|Recording|Speech|Transcription|UnstableSpeech).*"
)
_ASKED: Final = ("Digits", "FinishedOnKey")


def _names(view: kit.EventView) -> tuple[str, ...]:
    return tuple(view.data) if isinstance(view.data, dict) else ()


def _only_a_call(view: kit.EventView) -> object:
    """The call, of what names nothing else: no conference, stream, recording, transcription, queue or other leg."""
    others = (name for name in _names(view) if name not in _CALLS and _ABOUT_ELSE.fullmatch(name))
    return None if next(others, None) else _call.get(view)


def _call_that_got_a_status(view: kit.EventView) -> object:
    """The call, of what tells its status and brings no answer of the caller's."""
    return None if set(_ASKED) & set(_names(view)) else _only_a_call(view)


def _happened(view: kit.EventView) -> object:
    """Return what happened, in the word that one subscribes to: `participant-join`, `stream-started`."""
    name = next((name for name in _names(view) if name.endswith("Event") and name != "Event"), None)
    return view.data[name] if name else None


_status_of_call = kit.Extractor(_call_that_got_a_status, "$.CallSid")
_token = kit.header("i-twilio-idempotency-token")
_one = kit.one_event(
    id=kit.first(
        _token,
        kit.join(_message, "$.MessageStatus"),
        kit.join("$.RecordingSid", _recording),
        kit.when_matches(
            kit.first("$.CallStatus", kit.fixed("none")),
            "(?!in-progress|none).+",
            kit.first(
                kit.join(_status_of_call, "$.CallStatus", _number), kit.join(_status_of_call, "$.CallStatus")
            ),
        ),
        kit.when_matches(
            kit.first("$.CallStatus", kit.fixed("none")), "none", kit.Extractor(_only_a_call, "$.CallSid")
        ),
        kit.when_matches(_kind, "onMessageAdded", _message),
        kit.data_digest(),
    ),
    type=kit.first(
        kit.Extractor(_happened, "what happened"),
        kit.join(kit.fixed("recording"), _recording, by="-"),
        kit.join(kit.fixed("transcription"), "$.TranscriptionStatus", by="-"),
        _status,
        "$.EventType",
        "$.SmsStatus",
        _named,
    ),
    account="$.AccountSid",
    read=kit.json_or_form,
)
_many = kit.many_events(items="$", id="$.id", type="$.type", occurred_at="$.time")
events = kit.one_of_two(_one, _many, when=lambda delivery: delivery.body[:1] == b"[")


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with one of `secrets` under its URL. Raises: Rejected."""
    named = _SETTINGS.fullmatch(delivery.headers.get("x-twilio-webhooks-signature-settings", ""))
    scheme = _new if named and named[1].upper() == "HMAC_SHA256" else _old
    is_hashed = kit.url_parameter(delivery.url, _HASH) is not None
    signed = replace(delivery, body=b"") if is_hashed else delivery
    kit.verify_at_any_port(scheme.verify, signed, secrets, now)
    kit.expect_hash(delivery, _HASH)


def _signed(delivery: Delivery) -> bytes:
    """Return what was signed, the URL without its port; by GET the fields were in it and nowhere else."""
    is_url = delivery.body == delivery.url.partition("?")[2].encode("utf-8", "surrogatepass")
    is_hashed = kit.url_parameter(delivery.url, _HASH) is not None
    body = b"" if is_url or is_hashed else delivery.body
    return _new.signed_message(replace(delivery, url=kit.with_and_without_port(delivery.url)[0], body=body))


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """Return the delivery that Twilio would send: a form, or JSON with its hash in the URL."""
    kind = kit.FORM
    params = body
    url = options.get("url", "")
    if body[:1] in {b"{", b"["}:
        kind = "application/json"
        params = b""
        url = kit.with_parameter(url, _HASH, sha256(body).hexdigest())
    headers = {"content-type": kind} | _old.sign(params, secret, now, url=url)
    return Delivery("POST", url, headers, body)


sign = kit.headers_of(deliver)
sender = kit.Sender(
    id_is_signed=False,
    runs_repeats="a call that asks twice, and a conference that is joined twice, may bring the same fields",
    body_is_unsigned=False,
    signs_url=True,
    signed_message=_signed,
    retry_horizon=kit.days(1),
    retries_on=(),
    identity=kit.told_apart_by(
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
    decode=kit.query_as_form,
    setup_url="https://console.twilio.com/",
)
