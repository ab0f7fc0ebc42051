"""Plivo signs its URL, the fields of the form and a nonce with HMAC-SHA256, in base64; the key is the auth token.

`X-Plivo-Signature-V3` may list several signatures, of an account and its subaccount. The nonce is new in each request
and no time is signed, so only the event's id tells a replay. The id is made of all fields: a status of a message
comes once. Names and values are signed with nothing between, so whoever has a delivery can shift them; what comes
again with its nonce is a repeat, whatever it says. Callbacks by GET have their fields in the query. What wants XML
for an answer (a call's answer URL) is not for an inbox.

https://www.plivo.com/docs/messaging/concepts/signature-validation
"""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

from hookonce.providers import Delivery, Reason, Rejected, kit

_NONCE = "x-plivo-signature-v3-nonce"
_MAX_PARAMETERS = 100


def _query(url: str) -> str:
    """Return the parameters of a query, decoded, sorted and joined again, as Plivo signs them. Raises: Rejected."""
    try:
        pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise Rejected(Reason.BAD_HEADER, "the URL's query can't be read") from None
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _signed(delivery: Delivery, _: bytes) -> bytes:
    """Return URL, query, fields and nonce as Plivo's SDKs put them together. Raises: Rejected."""
    base, query = delivery.url.partition("?")[0], _query(delivery.url)
    fields = "".join(name + value for name, value in sorted(kit.form_pairs(delivery)))
    mark = "?" if query or fields else ""
    dot = "." if query and fields else ""
    nonce = kit.octets(*kit.header_of(delivery.headers, (_NONCE,)))
    return f"{base}{mark}{query}{dot}{fields}.".encode("utf-8", "surrogatepass") + nonce


def _message(delivery: Delivery) -> bytes:
    """Return what was signed; by GET the fields were in the URL and nowhere else. Raises: Rejected."""
    is_url = delivery.body == delivery.url.partition("?")[2].encode("utf-8", "surrogatepass")
    return _signed(replace(delivery, body=b"") if is_url else delivery, b"")


scheme = kit.Hmac(header="x-plivo-signature-v3", separator=",", encoding="base64", signed=_signed)
sign = kit.signer(scheme.sign, event_id=_NONCE, content=kit.FORM)
_status = kit.first("$.Status", "$.MessageStatus", "$.CallStatus")
events = kit.one_event(
    id=kit.data_digest(),
    type=kit.first(
        kit.join("$.Event", _status, by="."),
        kit.join(kit.fixed("message"), _status, by="."),
        kit.fixed("message"),
    ),
    account=kit.first("$.ParentAuthID", "$.MessageUUID", "$.CallUUID"),
    read=kit.form_body,
)


def decode(delivery: Delivery, secrets: Sequence[str]) -> Delivery:
    """Put the fields where they are read, of a callback by GET."""
    return kit.query_as_form(delivery, secrets)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="a call's events are told by few fields, and some of them occur twice",
    signed_in_parts=True,
    signed_message=_message,
    body_is_unsigned=False,
    signs_url=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by(
        "$.MessageUUID + $.Status", "$.MessageUUID", "$.CallUUID", new_on_retry=(f"header {_NONCE}",)
    ),
    methods=("POST", "GET"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://console.plivo.com/",
)
