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
from datetime import datetime
from functools import partial
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

_APPLE: Final = kit.certificates.Root("63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179")
_MARKS: Final = ("1.2.840.113635.100.6.11.1", "1.2.840.113635.100.6.2.1")
_ENVIRONMENTS: Final = ("Production", "Sandbox", "Xcode", "LocalTesting")
_PLACES: Final = ("data", "summary", "externalPurchaseToken", "appData")
_TIME: Final = kit.Timestamp(key="signedDate", unit="ms", tolerance=kit.days(7))


def _token(delivery: Delivery) -> kit.jws.Token:
    text = kit.json_paths.find_text(kit.json_body(delivery), "signedPayload")
    return kit.jws.read(text, "$.signedPayload", Reason.BAD_BODY)


_kind = kit.field("$.notificationType")
events = kit.one_event(
    id="$.notificationUUID",
    type=kit.first(kit.join(_kind, "$.subtype", by="."), _kind),
    account=kit.first(*(kit.field(f"$.{place}.bundleId") for place in _PLACES)),
    occurred_at="$.signedDate",
    read=lambda delivery: _token(delivery).claims,
)


def _verify(environments: Sequence[str], delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if Apple signed it for one of the apps, of one of the environments. Raises: Rejected."""
    owners = kit.owners_of(secrets, "bundle_id")
    token = _token(delivery)
    places = [place for name in _PLACES if isinstance(place := token.claims.get(name), dict)]
    ours = [owner for owner in owners if [place.get("bundleId") for place in places] == [owner.name]]
    if not ours:
        raise Rejected(Reason.BAD_SIGNATURE, "the notification is for none of the apps of this source")
    at = _TIME.moment(kit.json_paths.find_text(token.claims, "signedDate"))
    roots = [kit.certificates.Root.of(owner.key) if owner.key else _APPLE for owner in ours]
    chain = kit.certificates.chain_of(token.header.get("x5c"))
    kit.certificates.expect_chain(chain, roots, _MARKS, at)
    kit.jws.expect_authentic(token, [kit.certificates.key_in(chain[0], "ecdsa-sha256")], ("ES256",))
    if any(_environment_of(place) not in environments for place in places):
        raise Rejected(Reason.BAD_SIGNATURE, f"the notification is of none of {', '.join(environments)}")
    _TIME.check(at.timestamp(), now)


def check_secret(secret: str) -> None:
    """Raises: ValueError unless it is a bundle id, alone or with a certificate."""
    owner = kit.owner_of(secret, "bundle_id")
    if "." not in owner.name or (owner.key and not kit.certificates.x5c_of(owner.key)):
        raise ValueError(
            "the secret is not usable; expected the app's bundle id, or 'bundle:PEM' with a root"
        )


def _deliver(
    environment: str, body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]
) -> Delivery:
    """Return a delivery of the claims `body`. Raises: ValueError unless a key and its chain follow the bundle."""
    owner = kit.owner_of(secret, "bundle_id")
    given = kit.json_or_empty(body)
    claims: dict[str, Any] = {"notificationType": "TEST", "notificationUUID": kit.made_id(body)}
    claims |= given if isinstance(given, dict) and "notificationUUID" in given else {}
    claims |= {
        "data": {"bundleId": owner.name, "environment": environment},
        "signedDate": int(now.timestamp() * 1000),
    }
    token = kit.jws.make(claims, owner.key, "ES256", {"x5c": kit.certificates.x5c_of(owner.key)})
    return kit.as_json({"signedPayload": token}, **options)


def _environment_of(place: Mapping[str, Any]) -> str:
    """Return the environment that a notification names; of a token of an external purchase its id tells."""
    token = kit.json_paths.find_text(place, "externalPurchaseId")
    told = ("Sandbox" if token.startswith("SANDBOX") else "Production") if token else ""
    return kit.json_paths.find_text(place, "environment") or told


@kit.with_options("apple_app_store")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider for a source's `environments`."""
    environments = given.some_of("environments", _ENVIRONMENTS, "Production")
    return kit.Configured(
        verify=partial(_verify, environments),
        sign=kit.signature_in_body.sign,
        events=events,
        sender=kit.Sender(
            proof=("$.signedPayload",),
            id_is_signed=True,
            body_is_unsigned=False,
            signed_in_parts=True,
            retry_horizon=kit.days(7),
            identity=kit.told_apart_by("claim notificationUUID"),
            tolerance=_TIME.tolerance,
            max_body=1 << 20,  # it is parsed before it is known to be genuine
            deliver=partial(_deliver, environments[0]),
            mode=kit.mode(kit.first("$.data.environment", "$.summary.environment"), live=("Production",)),
            setup_url="https://appstoreconnect.apple.com",
        ),
    )
