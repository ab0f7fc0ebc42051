"""The Bot Framework (Azure AI Bot Service) sends a token (RS256) in `Authorization`, which says nothing of the body.

The secret is the bot's app id, which must be the token's `aud`; a key of one's own behind it (a JWK set or PEM)
stands for those that would be fetched. Issuer is api.botframework.com, and the token's `serviceurl` must be the
activity's: only that of the body is covered. Whether a key is endorsed for the channel is not looked at, and tokens
of the emulator and of skills are refused. The id of an activity is unique in its conversation, and the same on each
attempt; a message keeps it when it is edited, deleted or restored, so for all other activities the type and the
content are parts of the event's id.

https://learn.microsoft.com/en-us/azure/bot-service/rest-api/bot-framework-rest-connector-authentication
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

_KEYS: Final = "https://login.botframework.com/v1/.well-known/keys"
_FETCHES: Final = (r"https://login\.botframework\.com/v1/\.well-known/keys",)
_SECRET: Final = ("app_id", "jwks")
_LEEWAY: Final = kit.minutes(5)
_SOME_SERVICE: Final = "https://smba.trafficmanager.net/teams/"
_SERVICE: Final = ("serviceUrl",)


def _expect_service(claims: Mapping[str, Any], delivery: Delivery) -> None:
    named = claims.get("serviceurl", claims.get("serviceUrl"))
    if named is None or named != kit.json_paths.find(kit.json_body(delivery), _SERVICE):
        raise Rejected(Reason.BAD_SIGNATURE, "the token's serviceurl is not the activity's")


scheme = kit.Jwt(
    algorithms=("RS256",),
    issuers=("https://api.botframework.com",),
    needs=("exp", "nbf"),
    leeway=_LEEWAY,
    lifetime=kit.hours(1),
    more=_expect_service,
)
_conversation = kit.join("$.channelId", "$.conversation.id")
_kind = kit.field("$.type")
_activity = kit.scoped(_conversation, "$.id")
events = kit.one_event(
    id=kit.or_body(
        kit.when_matches(kit.first(_kind, kit.fixed("message")), "message", _activity),
        kit.join(_activity, _kind, kit.body_digest()),
    ),
    type=kit.or_unknown(_kind),
    account=_conversation,
    occurred_at="$.timestamp",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime, keys: kit.Documents = None) -> None:
    """Accept `delivery` if its token is for one of the apps. Raises: Rejected, KeyNeeded."""
    owners = kit.owners_of(secrets, *_SECRET)
    token = scheme.token(delivery)
    ours = [owner for owner in owners if owner.name and owner.name == token.claims.get("aud")]
    if not ours or token.header.get("alg") != "RS256":
        raise Rejected(Reason.BAD_SIGNATURE, "the token is for none of the apps of this source")
    found = []
    for owner in ours:
        if owner.key:
            is_set = owner.key.startswith("{")
            kid = token.header.get("kid")
            found += (
                kit.jws.keys_in(owner.key.encode(), kid)
                if is_set
                else kit.public_keys.public_keys([owner.key], "rsa-sha256")
            )
        else:
            found += kit.jws.fetched_keys(_KEYS, keys, _FETCHES, token.header.get("kid"))
    scheme.check(delivery, found, now)


def sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    """Return what the service would send. Raises: ValueError unless `secret` is `app_id:PEM` with a private key."""
    owner = kit.owner_of(secret, *_SECRET)
    said = kit.json_or_empty(body)
    service = said.get("serviceUrl") if isinstance(said, dict) else None
    claims = scheme.claims(body, now, **options) | {"aud": owner.name, "serviceurl": service}
    return {
        "content-type": "application/json",
        "authorization": f"Bearer {kit.jws.make(claims, owner.key, 'RS256')}",
    }


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """Return a delivery of `body` with a service's URL, if it has none. Raises: ValueError as `sign` does."""
    said = kit.json_or_empty(body)
    if isinstance(said, dict) and not said.get("serviceUrl"):
        body = json.dumps({**said, "serviceUrl": _SOME_SERVICE}).encode()
    return Delivery("POST", options.get("url", ""), sign(body, secret, now, **options), body)


def check_secret(secret: str) -> None:
    """Raises: ValueError for a blank app id."""
    if not kit.owner_of(secret, *_SECRET).name:
        raise ValueError("the secret is not usable; expected the bot's app id (Microsoft App ID)")


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$.channelId + $.conversation.id + $.id"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    fetches=_FETCHES,
    setup_url="https://portal.azure.com/#browse/Microsoft.BotService%2FbotServices",
)
