"""fal signs request id, user id, time and the body's SHA-256, a line each, with Ed25519, in hex.

The keys are fal's, the same for all its users, and fetched; so the secret is our user id, which comes in
`X-Fal-Webhook-User-Id`. `user_id:PEM` pins a key. The id is `$.request_id`, the same on every attempt; the
type is `$.status`, OK or ERROR. fal tries ten times in two hours.

https://docs.fal.ai/model-apis/model-endpoints/webhooks
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, Unpack

from providers import Delivery, KeyNeeded, Reason, Rejected
from providers.kit import Said, Timestamp, field, first, fixed, header, made_id, one_event
from providers.kit.asymmetric import public_keys, signature_in, signature_of, verifies
from providers.kit.fetched import Documents, fetched, owner_of, owners_of
from providers.kit.jws import keys_in
from providers.kit.reading import header_of, octets

_NAMES: Final = tuple(f"x-fal-webhook-{name}" for name in ("request-id", "user-id", "timestamp"))
_TIME: Final = Timestamp(header=_NAMES[2])
_JWKS: Final = "https://rest.alpha.fal.ai/.well-known/jwks.json"
events = one_event(
    id=first(field("$.request_id"), header(_NAMES[0])),
    type=first(field("$.status"), fixed("unknown")),
    account=header(_NAMES[1]),
)
TOLERANCE = _TIME.tolerance
RETRY_HORIZON = timedelta(hours=2)
FETCHES = (r"https://rest\.alpha\.fal\.ai/\.well-known/jwks\.json",)
SETUP = "https://docs.fal.ai/model-apis/model-endpoints/webhooks"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime, keys: Documents = None) -> None:
    """Accept `delivery` if fal signed it for one of the users. Raises: Rejected, KeyNeeded."""
    owners = owners_of(secrets, "user_id")
    values = [header_of(delivery.headers, (name,)) for name in _NAMES]
    signature = signature_in(*header_of(delivery.headers, ("x-fal-webhook-signature",)), "hex")
    seconds = _TIME.parse(values[2][1])
    message = _message([octets(*value) for value in values], delivery.body)
    ours = [owner for owner in owners if owner.name == values[1][1]]
    if not ours:
        raise Rejected(Reason.BAD_SIGNATURE, "the delivery is for none of the users of this source")
    pinned = [owner.key for owner in ours if owner.key]
    found = public_keys(pinned, "ed25519") if pinned else keys_in(fetched(_JWKS, keys, FETCHES), None)
    if not any(verifies(key, "ed25519", signature, message) for key in found):
        if pinned:
            raise Rejected(Reason.BAD_SIGNATURE, "the key of this source did not sign this")
        raise KeyNeeded(_JWKS)
    _TIME.check(seconds, now)


def _message(values: Sequence[bytes], body: bytes) -> bytes:
    return b"\n".join([*values, sha256(body).hexdigest().encode()])


def CHECK(secret: str) -> None:  # noqa: N802  a declaration of the module
    """Raises: ValueError unless it starts with a user's id."""
    if not owner_of(secret, "user_id").name:
        raise ValueError("the secret is not usable; expected your fal user id, or 'user_id:PEM'")


def sign(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> dict[str, str]:
    """What fal would send. Raises: ValueError unless `secret` is `user_id:PEM` with a private key."""
    owner = owner_of(secret, "user_id")
    values = [said.get("event_id") or made_id(body), owner.name, _TIME.write(now)]
    raw = signature_of(owner.key, "ed25519", _message([value.encode() for value in values], body))
    return dict(zip(_NAMES, values, strict=True)) | {"x-fal-webhook-signature": raw.hex()}
