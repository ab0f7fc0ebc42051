"""Vonage sends a token (JWT, HS256) in `Authorization`, which names the body's SHA-256 in `payload_hash`.

The key is the account's signature secret, as text. Vonage's SDK checks the token only: the hash must be
compared besides, and a delivery without it (a webhook by GET) is refused; choose POST with JSON. Statuses of
a message share its `message_uuid`, those of a call its `uuid`, so the status is part of the id; `jti` is
another for every attempt. The account is the token's `api_key`. Vonage waits 5 s and tries for a day. The
older SMS API signs with `sig` in the parameters and is not taken.

https://developer.vonage.com/en/getting-started/concepts/webhooks
"""

from datetime import timedelta

from providers.kit import body_digest, field, first, fixed, joined, one_event, signer
from providers.kit.jwt import Jwt, claim

scheme = Jwt(
    issuers=("Vonage",), body_hash=("payload_hash", "hex"), needs=("iat",), max_age=timedelta(minutes=5)
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(
        joined(field("$.message_uuid"), field("$.status")),
        field("$.message_uuid"),
        joined(field("$.uuid"), field("$.status")),
        body_digest(),
    ),
    type=first(field("$.status"), field("$.message_type"), field("$.channel"), fixed("inbound")),
    account=first(claim("api_key"), field("$.api_key"), claim("application_id")),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://dashboard.nexmo.com/settings"
