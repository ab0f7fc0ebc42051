"""Vonage sends a token (JWT, HS256) in `Authorization`, which names the body's SHA-256 in `payload_hash`.

The key is the account's signature secret, as text. Vonage's SDK checks the token only: the hash must be
compared besides, and a delivery without it (a webhook by GET) is refused; choose POST with JSON. Statuses of
a message share its `message_uuid`, those of a call its `uuid`, so the status is part of the id; `jti` is
another for every attempt. The account is the token's `api_key`. Vonage waits 5 s and tries for a day. The
older SMS API signs with `sig` in the parameters and is not taken.

https://developer.vonage.com/en/getting-started/concepts/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.schemes.jwt import Jwt, claim

scheme = Jwt(
    issuers=("Vonage",), body_hash=("payload_hash", "hex"), needs=("iat",), max_age=timedelta(minutes=5)
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(
        join(field("$.message_uuid"), field("$.status")),
        field("$.message_uuid"),
        join(field("$.uuid"), field("$.status")),
        body_digest(),
    ),
    type=first(field("$.status"), field("$.message_type"), field("$.channel"), fixed("inbound")),
    account=first(claim("api_key"), field("$.api_key"), claim("application_id")),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by(
        "$.message_uuid + $.status",
        "$.message_uuid",
        "$.uuid + $.status",
        "$.timestamp",
        new_on_retry=("claim jti",),
        known_from="https://developer.vonage.com/en/getting-started/concepts/webhooks",
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.nexmo.com/settings",
)
