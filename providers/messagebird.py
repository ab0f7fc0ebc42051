"""MessageBird sends a token (JWT, HS256) that names the SHA-256 of our URL and of the body, in hex.

It is in `MessageBird-Signature-JWT`, the hashes in `url_hash` and `payload_hash`; the key is the signing key
of the account, not an API key. The URL is the one that was given to MessageBird, so `public_url` must be
right. Without a body there is no `payload_hash`: status reports of SMS come by GET, all of them in the query, one
for each recipient. The method is not signed and decides nothing. The id is the message's with its status (and
recipient); the token's `jti` is another for each request. The older `MessageBird-Signature` and the newer Bird
platform sign otherwise and are not taken.

https://developers.messagebird.com/api/#verifying-http-requests
"""

from hookonce.providers import kit

_id = kit.field("$.id")
_status = kit.field("$.status")
_message = kit.field("$.message.id")
events = kit.one_event(
    id=kit.or_body(
        kit.join(_id, "$.recipient", _status, "$.statusDatetime"),
        kit.join(_id, _status),
        kit.join(_message, "$.message.status", "$.type"),
        kit.join(_message, "$.message.status"),
        kit.join(_message, "$.type"),
        _id,
    ),
    type=kit.first("$.type", _status, kit.fixed("message")),
    occurred_at=kit.first("$.message.updatedDatetime", "$.statusDatetime", "$.createdDatetime"),
    read=kit.json_or_form,
)
sender = kit.Sender(
    scheme=kit.Jwt(
        header="messagebird-signature-jwt",
        algorithms=("HS256", "HS384", "HS512"),
        issuers=("MessageBird",),
        body_hash=("payload_hash", "hex"),
        hash_is_optional=True,
        url=("url_hash", "sha256"),
        needs=("nbf", "exp"),
        leeway=kit.seconds(1),
    ),
    id_is_signed=True,
    signs_url=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.id + $.recipient + $.status + $.statusDatetime",
        "$.id + $.status",
        "$.message.id + $.message.status",
        "$.message.id + $.type",
        new_on_retry=("claim jti",),
        known_from="https://developers.messagebird.com/api/#verifying-http-requests",
    ),
    methods=("POST", "GET"),
    decode=kit.query_as_form,
    setup_url="https://dashboard.messagebird.com/developers/settings",
)
