"""Apple puts a token (JWS, ES256) into the body, as `$.signedPayload`; its certificates lead to Apple's root.

The chain in `x5c` must end in Apple Root CA - G3 (known by its fingerprint), and carry Apple's marks for the
App Store. Apple signs for every app alike, so the secret is our bundle id; with a PEM certificate behind it
(`bundle:PEM`), that is the root, for tests in Xcode and of one's own. The id is `notificationUUID`, the same
on every attempt; the type is `notificationType.subtype`. Apple tries for six days. Purchases in the sandbox cost
nothing and are signed alike, so only notifications of the environment `Production` are taken; the option
`environments` lists others (`Sandbox`, `Xcode`, `LocalTesting`) for a source that may grant what was not paid for.

https://developer.apple.com/documentation/appstoreservernotifications/responsebodyv2
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    Configured,
    Sender,
    SignOptions,
    Timestamp,
    as_json,
    field,
    first,
    join,
    json_body,
    json_or_empty,
    json_paths,
    made_id,
    one_event,
    owner_of,
    owners_of,
    signature_in_body,
    told_apart_by,
)
from hookonce.providers.kit.crypto.certificates import Root, chain_of, expect_chain, key_in, x5c_of
from hookonce.providers.kit.crypto.jws import Token, expect_authentic, make, read
from hookonce.providers.kit.registry.options import Options

_APPLE: Final = Root("63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179")
_MARKS: Final = ("1.2.840.113635.100.6.11.1", "1.2.840.113635.100.6.2.1")
_ENVIRONMENTS: Final = ("Production", "Sandbox", "Xcode", "LocalTesting")
_PLACES: Final = ("data", "summary", "externalPurchaseToken", "appData")
_TIME: Final = Timestamp(key="signedDate", unit="ms", tolerance=timedelta(days=7))


def _token(delivery: Delivery) -> Token:
    text = json_paths.find_text(json_body(delivery), "signedPayload")
    return read(text, "$.signedPayload", Reason.BAD_BODY)


_kind = field("$.notificationType")
events = one_event(
    id=field("$.notificationUUID"),
    type=first(join(_kind, field("$.subtype"), by="."), _kind),
    account=first(*(field(f"$.{place}.bundleId") for place in _PLACES)),
    occurred_at=field("$.signedDate"),
    read=lambda delivery: _token(delivery).claims,
)


def _verify(environments: Sequence[str], delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if Apple signed it for one of the apps, of one of the environments. Raises: Rejected."""
    owners = owners_of(secrets, "bundle_id")
    token = _token(delivery)
    places = [place for name in _PLACES if isinstance(place := token.claims.get(name), dict)]
    ours = [owner for owner in owners if [place.get("bundleId") for place in places] == [owner.name]]
    if not ours:
        raise Rejected(Reason.BAD_SIGNATURE, "the notification is for none of the apps of this source")
    at = _TIME.moment(json_paths.find_text(token.claims, "signedDate"))
    roots = [Root.of(owner.key) if owner.key else _APPLE for owner in ours]
    chain = chain_of(token.header.get("x5c"))
    expect_chain(chain, roots, _MARKS, at)
    expect_authentic(token, [key_in(chain[0], "ecdsa-sha256")], ("ES256",))
    if any(_environment_of(place) not in environments for place in places):
        raise Rejected(Reason.BAD_SIGNATURE, f"the notification is of none of {', '.join(environments)}")
    _TIME.check(at.timestamp(), now)


def check_secret(secret: str) -> None:
    """Raises: ValueError unless it is a bundle id, alone or with a certificate."""
    owner = owner_of(secret, "bundle_id")
    if "." not in owner.name or (owner.key and not x5c_of(owner.key)):
        raise ValueError(
            "the secret is not usable; expected the app's bundle id, or 'bundle:PEM' with a root"
        )


def _deliver(
    environment: str, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]
) -> Delivery:
    """What Apple would send of the claims `body`. Raises: ValueError unless a key and its chain follow the bundle."""
    owner = owner_of(secret, "bundle_id")
    given = json_or_empty(body)
    claims: dict[str, Any] = {"notificationType": "TEST", "notificationUUID": made_id(body)}
    claims |= given if isinstance(given, dict) and "notificationUUID" in given else {}
    claims |= {
        "data": {"bundleId": owner.name, "environment": environment},
        "signedDate": int(now.timestamp() * 1000),
    }
    token = make(claims, owner.key, "ES256", {"x5c": x5c_of(owner.key)})
    return as_json({"signedPayload": token}, **options)


def _environment_of(place: Mapping[str, Any]) -> str:
    """Return the environment that a notification names; of a token of an external purchase its id tells."""
    token = json_paths.find_text(place, "externalPurchaseId")
    told = ("Sandbox" if token.startswith("SANDBOX") else "Production") if token else ""
    return json_paths.find_text(place, "environment") or told


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider for a source's `environments`. Raises: ValueError listing every mistake."""
    given = Options(options, "apple_app_store")
    environments = given.some_of("environments", _ENVIRONMENTS, "Production")
    given.done()
    return Configured(
        verify=partial(_verify, environments),
        sign=signature_in_body.sign,
        events=events,
        sender=Sender(
            id_is_signed=True,
            body_is_unsigned=False,
            signed_in_parts=True,
            retry_horizon=timedelta(days=7),
            identity=told_apart_by("claim notificationUUID"),
            tolerance=_TIME.tolerance,
            max_body=1 << 20,  # it is parsed before it is known to be genuine
            check_secret=check_secret,
            deliver=partial(_deliver, environments[0]),
            setup_url="https://appstoreconnect.apple.com",
        ),
    )
