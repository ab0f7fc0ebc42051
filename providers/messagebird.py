"""MessageBird sends a token (JWT, HS256) that names the SHA-256 of our URL and of the body, in hex.

It is in `MessageBird-Signature-JWT`, the hashes in `url_hash` and `payload_hash`; the key is the signing key
of the account, not an API key. The URL is the one that was given to MessageBird, so `public_url` must be
right. Without a body there is no `payload_hash`: status reports of SMS come by GET, all of them in the query, one
for each recipient. The id is the message's with its status (and recipient); the token's `jti` is another for each
request. The older `MessageBird-Signature` and the newer Bird platform sign otherwise and are not taken.

https://developers.messagebird.com/api/#verifying-http-requests
"""

from datetime import timedelta

from providers.kit import body_digest, field, first, fixed, form_body, joined, json_body, one_event, signer
from providers.kit.jwt import Jwt
from providers.kit.urls import query_as_form

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
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
_id, _status = field("$.id"), field("$.status")
events = one_event(
    id=first(
        joined(_id, field("$.recipient"), _status, field("$.statusDatetime")),
        joined(_id, _status),
        joined(field("$.message.id"), field("$.message.status")),
        joined(field("$.message.id"), field("$.type")),
        _id,
        body_digest(),
    ),
    type=first(field("$.type"), _status, fixed("message")),
    occurred_at=first(
        field("$.message.updatedDatetime"), field("$.statusDatetime"), field("$.createdDatetime")
    ),
    read=lambda delivery: (json_body if delivery.body[:1] in (b"{", b"[") else form_body)(delivery),
)
METHODS, opened = ("POST", "GET"), query_as_form
SIGNS_URL = True
SETUP = "https://dashboard.messagebird.com/developers/settings"
