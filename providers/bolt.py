"""Bolt signs the body with HMAC-SHA256, in base64; the key is the signing secret.

While that is rotated, `X-Bolt-Hmac-Sha256-Pending` holds the signature of the next one; each header that is there is
tried, and one right signature is enough. There is no id of the event: it is made of the transaction's and the type
(`payment`, `auth` …), and where Bolt tells neither, of the body's fingerprint; so are captures, of which a
transaction may have several.

https://help.bolt.com/developers/webhooks/hook-verification/
"""

from hookonce.providers import kit

_type = kit.field("$.type")
events = kit.one_event(
    id=kit.or_body(kit.when_matches(_type, "capture", kit.body_digest()), kit.join("$.id", _type)),
    type=kit.or_unknown(_type),
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header=("x-bolt-hmac-sha256", "x-bolt-hmac-sha256-pending"), every=True, encoding="base64"
    ),
    id_is_signed=True,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by(
        "$.id + $.type", "body", because="what names no transaction in its first level is told whole"
    ),
    setup_url="https://merchant.bolt.com/administration/api",
)
