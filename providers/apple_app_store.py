"""Apple puts a token (JWS, ES256) into the body, as `$.signedPayload`; its certificates lead to Apple's root.

The chain in `x5c` must end in Apple Root CA - G3 (known by its fingerprint), and carry Apple's marks for the
App Store. Apple signs for every app alike, so the secret is our bundle id; with a PEM certificate behind it
(`bundle:PEM`), that is the root, for tests in Xcode and of one's own. The id is `notificationUUID`, the same
on every attempt; the type is `notificationType.subtype`. Apple tries for six days.

https://developer.apple.com/documentation/appstoreservernotifications/responsebodyv2
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Unpack

from providers import Delivery, Reason, Rejected
from providers.kit import Said, Timestamp, field, first, in_body, joined, json_body, made_id, one_event, paths
from providers.kit.certificates import Root, chain_of, expect_chain, key_in, x5c_of
from providers.kit.fetched import owner_of, owners_of
from providers.kit.in_body import as_json, said_in
from providers.kit.jws import Token, expect_authentic, make, read

_APPLE: Final = Root("63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179")
_MARKS: Final = ("1.2.840.113635.100.6.11.1", "1.2.840.113635.100.6.2.1")
_PLACES: Final = ("data", "summary", "externalPurchaseToken", "appData")
_TIME: Final = Timestamp(key="signedDate", unit="ms", tolerance=timedelta(days=7))
MAX_BODY = 1 << 20  # it is parsed before it is known to be genuine
TOLERANCE, RETRY_HORIZON, SIGNED_IN_PARTS = _TIME.tolerance, timedelta(days=7), True
sign = in_body.sign
SETUP = "https://appstoreconnect.apple.com"


def _token(delivery: Delivery) -> Token:
    text = paths.find(json_body(delivery), ("signedPayload",))
    return read(str(text), "$.signedPayload", Reason.BAD_BODY)


_kind = field("$.notificationType")
events = one_event(
    id=field("$.notificationUUID"),
    type=first(joined(_kind, field("$.subtype"), by="."), _kind),
    account=first(*(field(f"$.{place}.bundleId") for place in _PLACES)),
    occurred_at=field("$.signedDate"),
    read=lambda delivery: _token(delivery).claims,
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if Apple signed it for one of the apps. Raises: Rejected."""
    owners, token = owners_of(secrets, "bundle_id"), _token(delivery)
    places = [place for name in _PLACES if isinstance(place := token.claims.get(name), dict)]
    ours = [owner for owner in owners if [place.get("bundleId") for place in places] == [owner.name]]
    if not ours:
        raise Rejected(Reason.BAD_SIGNATURE, "the notification is for none of the apps of this source")
    at = _TIME.moment(str(token.claims.get("signedDate")))
    roots = [Root.of(owner.key) if owner.key else _APPLE for owner in ours]
    chain = chain_of(token.header.get("x5c"))
    expect_chain(chain, roots, _MARKS, at)
    expect_authentic(token, [key_in(chain[0], "ecdsa-sha256")], ("ES256",))
    _TIME.check(at.timestamp(), now)


def CHECK(secret: str) -> None:  # noqa: N802  a declaration of the module
    """Raises: ValueError unless it is a bundle id, alone or with a certificate."""
    owner = owner_of(secret, "bundle_id")
    if "." not in owner.name or (owner.key and not x5c_of(owner.key)):
        raise ValueError(
            "the secret is not usable; expected the app's bundle id, or 'bundle:PEM' with a root"
        )


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """What Apple would send of the claims `body`. Raises: ValueError unless a key and its chain follow the bundle."""
    owner, given = owner_of(secret, "bundle_id"), said_in(body)
    claims: dict[str, Any] = {"notificationType": "TEST", "notificationUUID": made_id(body)}
    claims |= given if isinstance(given, dict) and "notificationUUID" in given else {}
    claims |= {"data": {"bundleId": owner.name}, "signedDate": int(now.timestamp() * 1000)}
    token = make(claims, owner.key, "ES256", {"x5c": x5c_of(owner.key)})
    return as_json({"signedPayload": token}, **said)
