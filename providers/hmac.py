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

from hookonce.providers.kit import Configured, Sender, any_body, body_digest, delivering, one_event, signer
from hookonce.providers.kit.registry.declared_options import (
    expect_ids_that_differ,
    header_named,
    hmac_scheme,
    id_is_covered,
    id_place,
    identity,
    period,
    place,
    place_or_none,
    volatile,
)
from hookonce.providers.kit.registry.options import Options


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "hmac")
    scheme = hmac_scheme(given)
    left_out = volatile(given, "volatile")
    events = one_event(
        id=id_place(given, "id", body_digest(*left_out)),
        type=place(given, "type"),
        account=place_or_none(given, "account"),
        occurred_at=place_or_none(given, "occurred_at"),
        read=any_body,
    )
    within = period(given, "period")
    expect_ids_that_differ(given, "id", within)
    given.done()
    sign = signer(scheme.sign, event_id=header_named(options["id"]), type=header_named(options["type"]))
    return Configured(
        verify=scheme.verify,
        sign=sign,
        events=events,
        sender=Sender(
            id_is_signed=id_is_covered(options["id"], str(scheme.signed)),
            signed_message=scheme.signed_message if "{params}" in str(scheme.signed) else None,
            signs_url="{url}" in str(scheme.signed),
            retry_horizon=None,
            horizon_unknown="whoever sends decides",
            identity=identity(given, "id", within),
            tolerance=scheme.tolerance,
            id_period=within,
            volatile=left_out,
            check_secret=scheme.check_secret,
            deliver=None if scheme.header else delivering(scheme.deliver, sign),
        ),
    )
