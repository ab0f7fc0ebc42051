"""Any sender that signs with HMAC, described on the source: one that we don't know needs no code.

    hmac = { header = "X-Signature", prefix = "sha256=", id = "$.id", type = "$.event" }
    hmac = { header = "X-Sig", signed = "{timestamp}.{body}", timestamp = "X-Time", id = "header:X-Id", type = "$.t" }

header (required), prefix, hash (sha256, sha1, sha512, md5), encoding (hex, base64, base64url) and secret (raw, hex,
base64, whsec) say what the signature looks like; key and separator that it is one of a list (`t=1,v1=abc` has key =
"v1", and values may be quoted). header may be a list of names: any of them may hold a signature. A signature in the URL
is in the parameter query, instead of a header or where none was sent. signed is the template: {body}, {timestamp},
{url}, {path}, {method}, {params}, {sha256} (of the body, in hex; {sha256:base64}, {sha256:raw} for its bytes),
{header:name}. timestamp names its header, or is a table { header or key, unit (s, ms, iso, any), tolerance in seconds
}. id and type (required), account and occurred_at are places: "$.path", "header:Name", "query:name", and of all but the
id "fixed:text"; id may also be "fingerprint", of the body without the paths in volatile. A list of places counts by the
first that is there. Of a form "$.name" is a field; a body that is neither JSON nor a form is a text without places.
Where different events may have equal bytes and no id, period says for how many seconds what looks alike is the same
event. Of a batch items is the place of the list, "$" or "$.events": each element is an event, and the places, the
fingerprint and the paths in volatile are an element's. challenge and methods are as for `token`. signs_text = true says
that of a compressed body (Content-Encoding) the text within is signed, and not the bytes that are sent.

https://datatracker.ietf.org/doc/html/rfc2104
"""

from collections.abc import Mapping
from typing import Any

from hookonce.providers import kit


def configure(options: Mapping[str, Any]) -> kit.Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = kit.Options(options, "hmac")
    return kit.declared_options.by_signature(given, kit.declared_options.hmac_scheme(given))
