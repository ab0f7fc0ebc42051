"""MessageBird sends a token (JWT, HS256) that names the SHA-256 of our URL and of the body, in hex.

It is in `MessageBird-Signature-JWT`, the hashes in `url_hash` and `payload_hash`; the key is the signing key
of the account, not an API key. The URL is the one that was given to MessageBird, so `public_url` must be
right. Without a body there is no `payload_hash`: status reports of SMS come by GET, all of them in the query, one
for each recipient. The method is not signed and decides nothing. The id is the message's with its status (and
recipient); the token's `jti` is another for each request. The older `MessageBird-Signature` and the newer Bird
platform sign otherwise and are not taken.

https://developers.messagebird.com/api/#verifying-http-requests
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    json_or_form,
    one_event,
    query_as_form,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.schemes.jwt import Jwt

scheme = Jwt(
    header="messagebird-signature-jwt",
    algorithms=("HS256", "HS384", "HS512"),
    issuers=("MessageBird",),
    body_hash=("payload_hash", "hex"),
    hash_is_optional=True,
    url=("url_hash", "sha256"),
    needs=("nbf", "exp"),
    leeway=timedelta(seconds=1),
)
verify = scheme.verify
sign = signer(scheme.sign)
_id = field("$.id")
_status = field("$.status")
_message = field("$.message.id")
events = one_event(
    id=first(
        join(_id, field("$.recipient"), _status, field("$.statusDatetime")),
        join(_id, _status),
        join(_message, field("$.message.status"), field("$.type")),
        join(_message, field("$.message.status")),
        join(_message, field("$.type")),
        _id,
        body_digest(),
    ),
    former=(join(_message, field("$.message.status")),),
    type=first(field("$.type"), _status, fixed("message")),
    occurred_at=first(
        field("$.message.updatedDatetime"), field("$.statusDatetime"), field("$.createdDatetime")
    ),
    read=json_or_form,
)

sender = Sender(
    id_is_signed=True,
    signs_url=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by(
        "$.id + $.recipient + $.status + $.statusDatetime",
        "$.id + $.status",
        "$.message.id + $.message.status",
        "$.message.id + $.type",
        new_on_retry=("claim jti",),
        known_from="https://developers.messagebird.com/api/#verifying-http-requests",
    ),
    tolerance=scheme.tolerance,
    methods=("POST", "GET"),
    check_secret=scheme.check_secret,
    decode=query_as_form,
    setup_url="https://dashboard.messagebird.com/developers/settings",
)
