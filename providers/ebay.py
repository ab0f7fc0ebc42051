"""eBay signs the body with ECDSA (P-256, SHA-1); the header is base64 of JSON with the signature and the key's id.

The secrets are the public key, from getPublicKey of eBay's API (PEM, or `kid:PEM` to hold it to its id), and
the verification token. The URL is probed with `challenge_code` and wants the SHA-256 of code, token and our
URL, which is no signature. The id is the same on every attempt. eBay waits 3 s and tries for a day.

https://developer.ebay.com/api-docs/commerce/notification/overview.html
"""

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, Reply, kit

_ECDSA: Final = "ecdsa-sha1"
_CODE: Final = re.compile(r"[A-Za-z0-9-]{1,200}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{32,80}")
events = kit.one_event(
    id=kit.or_body("$.notification.notificationId"),
    type=kit.or_unknown("$.metadata.topic"),
    account="$.notification.data.userId",
    occurred_at="$.notification.eventDate",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if one of the keys signed it. Raises: Rejected."""
    owners = [owner for owner in kit.owners_of(secrets, "kid") if owner.key]
    kit.public_keys.public_keys([owner.key for owner in owners], _ECDSA)
    said = _header(*kit.header_of(delivery.headers, ("x-ebay-signature",)))
    if (said.get("alg"), said.get("digest")) != ("ecdsa", "SHA1"):
        raise Rejected(Reason.BAD_SIGNATURE, "the signature is of another kind")
    fitting = [owner.key for owner in owners if owner.name in {"", str(said.get("kid"))}]
    signature = kit.public_keys.signature_in("x-ebay-signature", str(said.get("signature")), "base64")
    kit.public_keys.expect_signature(
        kit.public_keys.usable_keys(fitting, _ECDSA), _ECDSA, signature, delivery.body
    )


def _header(name: str, value: str) -> dict[str, Any]:
    said = kit.json_or_empty(kit.public_keys.decode(value, "base64") or b"")
    if not isinstance(said, dict) or not said:
        raise Rejected(Reason.BAD_HEADER, f"header {name} is not JSON in base64")
    return said


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a challenge with what only the verification token makes; None for anything else."""
    code = kit.query_parameter(delivery, "challenge_code", _CODE)
    token = next((secret for secret in secrets if _TOKEN.fullmatch(secret)), None)
    if code is None or token is None:
        return None
    made = sha256((code + token + delivery.url.partition("?")[0]).encode()).hexdigest()
    return kit.json_reply({"challengeResponse": made})


def check_secret(secret: str) -> None:
    """Raises: ValueError unless it is a verification token or a key."""
    if _TOKEN.fullmatch(secret) is None:
        kit.public_keys.public_key(kit.owner_of(secret, "kid").key, _ECDSA)


def sign(body: bytes, secret: str, now: datetime, **_: Unpack[kit.SignOptions]) -> dict[str, str]:  # noqa: ARG001
    """Return the headers. Raises: ValueError unless `secret` is a private key, `PEM` or `kid:PEM`."""
    owner = kit.owner_of(secret, "kid")
    signature = b64encode(kit.public_keys.signature_of(owner.key, _ECDSA, body)).decode()
    said = {"alg": "ecdsa", "kid": owner.name, "signature": signature, "digest": "SHA1"}
    header = b64encode(json.dumps(said).encode()).decode()
    return {"content-type": "application/json", "x-ebay-signature": header}


sender = kit.Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    signs_url=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.notification.notificationId"),
    setup_url="https://developer.ebay.com/my/push",
)
