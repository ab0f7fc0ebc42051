"""Bolt signs the body with HMAC-SHA256, in base64; the key is the signing secret.

While that is rotated, `X-Bolt-Hmac-Sha256-Pending` holds the signature of the next one; either will do. There is
no id of the event: it is made of the transaction's and the type (`payment`, `auth` …), and where Bolt tells neither,
of the body's fingerprint; so are captures, of which a transaction may have several.

https://help.bolt.com/developers/webhooks/hook-verification/
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, joined, one_event, signer
from providers.kit.fields import only_if

scheme = Hmac(header=("x-bolt-hmac-sha256", "x-bolt-hmac-sha256-pending"), every=True, encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_type = field("$.type")
events = one_event(
    id=first(only_if(_type, "capture", body_digest()), joined(field("$.id"), _type), body_digest()),
    type=first(_type, fixed("unknown")),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://merchant.bolt.com/administration/api"
