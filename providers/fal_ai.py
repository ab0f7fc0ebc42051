"""fal signs request id, user id, time and the body's SHA-256, a line each, with Ed25519, in hex.

The keys are fal's, the same for all its users, and fetched; so the secret is our user id, which comes in
`X-Fal-Webhook-User-Id`. `user_id:PEM` pins a key. The id is `$.request_id`, the same on every attempt; the
type is `$.status`, OK or ERROR. fal tries ten times in two hours.

https://docs.fal.ai/model-apis/model-endpoints/webhooks
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Final, Unpack

from hookonce.providers import Delivery, KeyNeeded, Reason, Rejected, kit

_NAMES: Final = tuple(f"x-fal-webhook-{name}" for name in ("request-id", "user-id", "timestamp"))
_TIME: Final = kit.Timestamp(header=_NAMES[2])
_JWKS: Final = "https://rest.alpha.fal.ai/.well-known/jwks.json"
events = kit.one_event(
    id=kit.first("$.request_id", kit.header(_NAMES[0])),
    type=kit.or_unknown("$.status"),
    account=kit.header(_NAMES[1]),
)
_FETCHES = (r"https://rest\.alpha\.fal\.ai/\.well-known/jwks\.json",)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime, keys: kit.Documents = None) -> None:
    """Accept `delivery` if fal signed it for one of the users. Raises: Rejected, KeyNeeded."""
    owners = kit.owners_of(secrets, "user_id")
    values = [kit.header_of(delivery.headers, (name,)) for name in _NAMES]
    signature = kit.public_keys.signature_in(
        *kit.header_of(delivery.headers, ("x-fal-webhook-signature",)), "hex"
    )
    seconds = _TIME.parse(values[2][1])
    message = _message([kit.octets(*value) for value in values], delivery.body)
    ours = [owner for owner in owners if owner.name == values[1][1]]
    if not ours:
        raise Rejected(Reason.BAD_SIGNATURE, "the delivery is for none of the users of this source")
    pinned = [owner.key for owner in ours if owner.key]
    found = (
        kit.public_keys.public_keys(pinned, "ed25519")
        if pinned
        else kit.jws.keys_in(kit.fetched(_JWKS, keys, _FETCHES), None)
    )
    if not any(kit.public_keys.verifies(key, "ed25519", signature, message) for key in found):
        if pinned:
            raise Rejected(Reason.BAD_SIGNATURE, "the key of this source did not sign this")
        raise KeyNeeded(_JWKS)
    _TIME.check(seconds, now)


def _message(values: Sequence[bytes], body: bytes) -> bytes:
    return b"\n".join([*values, sha256(body).hexdigest().encode()])


def check_secret(secret: str) -> None:
    """Raises: ValueError unless it starts with a user's id."""
    if not kit.owner_of(secret, "user_id").name:
        raise ValueError("the secret is not usable; expected your fal user id, or 'user_id:PEM'")


def sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    """Return the headers. Raises: ValueError unless `secret` is `user_id:PEM` with a private key."""
    owner = kit.owner_of(secret, "user_id")
    values = [options.get("event_id") or kit.made_id(body), owner.name, _TIME.write(now)]
    raw = kit.public_keys.signature_of(
        owner.key, "ed25519", _message([value.encode() for value in values], body)
    )
    return dict(zip(_NAMES, values, strict=True)) | {"x-fal-webhook-signature": raw.hex()}


sender = kit.Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.hours(2),
    identity=kit.told_apart_by("$.request_id", "header x-fal-webhook-request-id"),
    tolerance=_TIME.tolerance,
    fetches=_FETCHES,
    setup_url="https://docs.fal.ai/model-apis/model-endpoints/webhooks",
)
