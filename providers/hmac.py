"""Any sender that signs with HMAC, described on the source: one that we don't know needs no code.

    hmac = { header = "X-Signature", prefix = "sha256=", id = "$.id", type = "$.event" }
    hmac = { header = "X-Sig", signed = "{timestamp}.{body}", timestamp = "X-Time", id = "header:X-Id", type = "$.t" }

header (required), prefix, hash (sha256, sha1, sha512, md5), encoding (hex, base64, base64url) and secret (raw,
hex, base64, whsec) say what the signature looks like; key and separator that it is one of a list
(`t=1,v1=abc` has key = "v1"). header may be a list of names: any of them may hold a signature. A signature in the
URL is in the parameter query, instead of a header or where none was sent. signed is the template: {body},
{timestamp}, {url}, {method}, {params}, {header:name}. timestamp names its header, or is a table { header or key, unit
(s, ms, iso, any), tolerance in seconds }. id and type (required), account and occurred_at are places: "$.path",
"header:Name", "query:name", and of all but the id "fixed:text"; id may also be "fingerprint", of the body without the
paths in volatile. Of a form "$.name" is a field; a body that is neither JSON nor a form is a text without places. Where
different events may have equal bytes and no id, period says for how many seconds what looks alike is the same event.

https://datatracker.ietf.org/doc/html/rfc2104
"""

from collections.abc import Mapping
from typing import Any

from hookonce.providers import kit

declared = kit.declared_options


def configure(options: Mapping[str, Any]) -> kit.Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = kit.Options(options, "hmac")
    scheme = declared.hmac_scheme(given)
    left_out = declared.volatile(given, "volatile")
    events = declared.events(given, left_out)
    within = declared.period(given, "period")
    declared.expect_ids_that_differ(given, "id", within)
    given.done()
    return kit.Configured(
        sign=declared.signer_of(scheme.sign, options),
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=declared.id_is_covered(options["id"], str(scheme.signed)),
            signed_message=scheme.signed_message if "{params}" in str(scheme.signed) else None,
            signs_url="{url}" in str(scheme.signed),
            retry_horizon="whoever sends decides",
            identity=declared.identity(given, "id", within),
            id_period=within,
            volatile=left_out,
        ),
    )
