"""The Bot Framework (Azure AI Bot Service) sends a token (RS256) in `Authorization`, which says nothing of the body.

The secret is the bot's app id, which must be the token's `aud`; a key of one's own behind it (a JWK set or PEM)
stands for those that would be fetched. Issuer is api.botframework.com, and the token's `serviceurl` must be the
activity's: only that of the body is covered. Whether a key is endorsed for the channel is not looked at, and tokens
of the emulator and of skills are refused. The id of an activity is unique in its conversation, and the same on each
attempt; a message keeps it when it is edited, deleted or restored, so of what is no message the type and the content
are parts of the event's id.

https://learn.microsoft.com/en-us/azure/bot-service/rest-api/bot-framework-rest-connector-authentication
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    Documents,
    Sender,
    SignOptions,
    body_digest,
    field,
    first,
    fixed,
    join,
    json_body,
    json_or_empty,
    json_paths,
    one_event,
    owner_of,
    owners_of,
    scoped,
    told_apart_by,
    when_matches,
)
from hookonce.providers.kit.crypto.jws import fetched_keys, keys_in, make
from hookonce.providers.kit.crypto.public_keys import public_keys
from hookonce.providers.kit.schemes.jwt import Jwt

_KEYS: Final = "https://login.botframework.com/v1/.well-known/keys"
_FETCHES: Final = (r"https://login\.botframework\.com/v1/\.well-known/keys",)
_SECRET: Final = ("app_id", "jwks")
_LEEWAY: Final = timedelta(minutes=5)
_SOME_SERVICE: Final = "https://smba.trafficmanager.net/teams/"
_SERVICE: Final = ("serviceUrl",)


def _expect_service(claims: Mapping[str, Any], delivery: Delivery) -> None:
    named = claims.get("serviceurl", claims.get("serviceUrl"))
    if named is None or named != json_paths.find(json_body(delivery), _SERVICE):
        raise Rejected(Reason.BAD_SIGNATURE, "the token's serviceurl is not the activity's")


scheme = Jwt(
    algorithms=("RS256",),
    issuers=("https://api.botframework.com",),
    needs=("exp", "nbf"),
    leeway=_LEEWAY,
    lifetime=timedelta(hours=1),
    more=_expect_service,
)
_conversation = join(field("$.channelId"), field("$.conversation.id"))
_kind = field("$.type")
_activity = scoped(_conversation, field("$.id"))
events = one_event(
    id=first(
        when_matches(first(_kind, fixed("message")), "message", _activity),
        join(_activity, _kind, body_digest()),
        body_digest(),
    ),
    former=(join(_conversation, field("$.id")),),
    type=first(_kind, fixed("unknown")),
    account=_conversation,
    occurred_at=field("$.timestamp"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime, keys: Documents = None) -> None:
    """Accept `delivery` if its token is for one of the apps. Raises: Rejected, KeyNeeded."""
    owners = owners_of(secrets, *_SECRET)
    token = scheme.token(delivery)
    ours = [owner for owner in owners if owner.name and owner.name == token.claims.get("aud")]
    if not ours or token.header.get("alg") != "RS256":
        raise Rejected(Reason.BAD_SIGNATURE, "the token is for none of the apps of this source")
    found = []
    for owner in ours:
        if owner.key:
            is_set = owner.key.startswith("{")
            kid = token.header.get("kid")
            found += keys_in(owner.key.encode(), kid) if is_set else public_keys([owner.key], "rsa-sha256")
        else:
            found += fetched_keys(_KEYS, keys, _FETCHES, token.header.get("kid"))
    scheme.check(delivery, found, now)


def sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    """Return what the service would send. Raises: ValueError unless `secret` is `app_id:PEM` with a private key."""
    owner = owner_of(secret, *_SECRET)
    said = json_or_empty(body)
    service = said.get("serviceUrl") if isinstance(said, dict) else None
    claims = scheme.claims(body, now, **options) | {"aud": owner.name, "serviceurl": service}
    return {"content-type": "application/json", "authorization": f"Bearer {make(claims, owner.key, 'RS256')}"}


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
    """Return a delivery of `body` with a service's URL, if it has none. Raises: ValueError as `sign` does."""
    said = json_or_empty(body)
    if isinstance(said, dict) and not said.get("serviceUrl"):
        body = json.dumps({**said, "serviceUrl": _SOME_SERVICE}).encode()
    return Delivery("POST", options.get("url", ""), sign(body, secret, now, **options), body)


def check_secret(secret: str) -> None:
    """Raises: ValueError for a blank app id."""
    if not owner_of(secret, *_SECRET).name:
        raise ValueError("the secret is not usable; expected the bot's app id (Microsoft App ID)")


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("$.channelId + $.conversation.id + $.id"),
    tolerance=scheme.tolerance,
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    fetches=_FETCHES,
    check_secret=check_secret,
    deliver=deliver,
    setup_url="https://portal.azure.com/#browse/Microsoft.BotService%2FbotServices",
)
