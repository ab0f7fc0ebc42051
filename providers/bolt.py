"""Bolt signs the body with HMAC-SHA256, in base64; the key is the signing secret.

While that is rotated, `X-Bolt-Hmac-Sha256-Pending` holds the signature of the next one; either will do. There is
no id of the event: it is made of the transaction's and the type (`payment`, `auth` …), and where Bolt tells neither,
of the body's fingerprint; so are captures, of which a transaction may have several.

https://help.bolt.com/developers/webhooks/hook-verification/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(header=("x-bolt-hmac-sha256", "x-bolt-hmac-sha256-pending"), every=True, encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
_type = field("$.type")
events = one_event(
    id=first(when_matches(_type, "capture", body_digest()), join(field("$.id"), _type), body_digest()),
    type=first(_type, fixed("unknown")),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by(
        "$.id + $.type", "body", because="what names no transaction in its first level is told whole"
    ),
    check_secret=scheme.check_secret,
    setup_url="https://merchant.bolt.com/administration/api",
)
