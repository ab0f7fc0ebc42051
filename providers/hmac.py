"""Any sender that signs with HMAC, described on the source: one that we don't know needs no code.

    hmac = { header = "X-Signature", prefix = "sha256=", id = "$.id", type = "$.event" }
    hmac = { header = "X-Sig", signed = "{timestamp}.{body}", timestamp = "X-Time", id = "header:X-Id", type = "$.t" }

header (required), prefix, hash (sha256, sha1, sha512), encoding (hex, base64, base64url) and secret (raw,
hex, base64, whsec) say what the signature looks like; key and separator that it is one of a list
(`t=1,v1=abc` has key = "v1"). signed is the template: {body}, {timestamp}, {url}, {method}, {header:name}.
timestamp names its header, or is a table { header or key, unit (s, ms, iso), tolerance in seconds }. id and
type (required), account and occurred_at are places: "$.path", "header:Name", "query:name", "fixed:text"; id may
also be "fingerprint", of the body without the paths in volatile. Of a form "$.name" is a field; a body that is
neither JSON nor a form is a text without places.

https://datatracker.ietf.org/doc/html/rfc2104
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from providers.kit import any_body, one_event, signer
from providers.kit.declared import hmac_scheme, id_place, place, place_or_none, volatile
from providers.kit.options import Options


def configure(options: Mapping[str, Any]) -> object:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "hmac")
    scheme = hmac_scheme(given)
    left_out = volatile(given, "volatile")
    events = one_event(
        id=id_place(given, "id", left_out),
        type=place(given, "type"),
        account=place_or_none(given, "account"),
        occurred_at=place_or_none(given, "occurred_at"),
        read=any_body,
    )
    given.done()
    return SimpleNamespace(
        verify=scheme.verify,
        sign=signer(scheme.sign, event_id=_header(options["id"]), type=_header(options["type"])),
        events=events,
        CHECK=scheme.check_secret,
        TOLERANCE=scheme.tolerance,
        VOLATILE=left_out,
        ID_IS_SIGNED=_is_signed(options["id"], str(scheme.signed)),
        SIGNS_URL="{url}" in str(scheme.signed),
    )


def _header(place: str) -> str:
    """The header that a place names, in lower case; empty for other places."""
    return place.removeprefix("header:").lower() if place.startswith("header:") else ""


def _is_signed(place: str, signed: str) -> bool:
    """Whether the event id is covered: one in the body is, others if the template has where they are."""
    if _header(place):
        return f"{{header:{_header(place)}}}" in signed.lower()
    return "{url}" in signed if place.startswith("query:") else True
