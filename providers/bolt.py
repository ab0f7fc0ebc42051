"""Bolt signs the body with HMAC-SHA256, in base64; the key is the signing secret.

There is no id of the event: it is made of the transaction's and the type (`payment`, `auth`, `capture` …), and
where Bolt tells neither, of the body's fingerprint.

https://help.bolt.com/developers/webhooks/hook-verification/
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(header="x-bolt-hmac-sha256", encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(joined(field("$.id"), field("$.type")), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://merchant.bolt.com/administration/api"
