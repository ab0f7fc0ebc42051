"""Vonage sends a token (JWT, HS256) in `Authorization`, which names the body's SHA-256 in `payload_hash`.

The key is the account's signature secret, as text. Vonage's SDK checks the token only: the hash must be
compared besides, and a delivery without it (a webhook by GET) is refused; choose POST with JSON. Statuses of
a message share its `message_uuid`, those of a call its `uuid`, so the status is part of the id; `jti` is
another for every attempt. The account is the token's `api_key`. Vonage waits 5 s and tries for a day. The
older SMS API signs with `sig` in the parameters and is not taken.

https://developer.vonage.com/en/getting-started/concepts/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body(kit.join("$.message_uuid", "$.status"), "$.message_uuid", kit.join("$.uuid", "$.status")),
    type=kit.first("$.status", "$.message_type", "$.channel", kit.fixed("inbound")),
    account=kit.first(kit.claim("api_key"), "$.api_key", kit.claim("application_id")),
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Jwt(
        prefix="Bearer ",
        issuers=("Vonage",),
        body_hash=("payload_hash", "hex"),
        needs=("iat",),
        max_age=kit.minutes(5),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.message_uuid + $.status",
        "$.message_uuid",
        "$.uuid + $.status",
        "$.timestamp",
        new_on_retry=("claim jti",),
        known_from="https://developer.vonage.com/en/getting-started/concepts/webhooks",
    ),
    setup_url="https://dashboard.nexmo.com/settings",
)
