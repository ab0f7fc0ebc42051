"""HTTP Message Signatures (RFC 9421), as far as a sender signs the digest of the body with Ed25519.

`Content-Digest` holds the body's SHA-256 (RFC 9530), `Signature-Input` what is signed, when and with which key, and
`Signature` the signature under the same label. Another set of components, or another algorithm, is refused.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final, NamedTuple

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.crypto.public_keys import signature_in, signature_of
from hookonce.providers.kit.reading.bodies import header_of

_NAMES: Final = ("content-digest", "signature-input", "signature")
_INPUT: Final = re.compile(
    r'([a-z]\w{0,40})=(\("content-digest"\);created=(\d{1,12});alg="ed25519";keyid="([\w-]{1,100})")',
    re.ASCII,
)


class Signature(NamedTuple):
    """A signature that was read and not yet verified; `message` is what it must be of."""

    key_id: str
    created: float
    signature: bytes
    message: bytes


def read(delivery: Delivery) -> Signature:
    """Return the signature of `delivery`, whose digest is its body's.

    Raises: Rejected(missing_header, bad_header, bad_signature).
    """
    (_, digest), (_, text), (name, value) = (header_of(delivery.headers, (each,)) for each in _NAMES)
    found = _INPUT.fullmatch(text)
    if found is None or not value.startswith(f"{found[1]}=:") or not value.endswith(":"):
        raise Rejected(Reason.BAD_HEADER, "the headers are not a signature of the body's digest by Ed25519")
    signature = signature_in(name, value[len(found[1]) + 2 : -1], "base64")
    if digest != _digest(delivery.body):
        raise Rejected(Reason.BAD_SIGNATURE, "header content-digest is not this body's")
    return Signature(found[4], float(found[3]), signature, _message(digest, found[2]))


def sign(body: bytes, private_key: str, key_id: str, now: datetime) -> Mapping[str, str]:
    """Return the three headers. Raises: ValueError for a key that can't sign."""
    parameters = f'("content-digest");created={int(now.timestamp())};alg="ed25519";keyid="{key_id}"'
    raw = signature_of(private_key, "ed25519", _message(_digest(body), parameters))
    values = (_digest(body), f"sig_1={parameters}", f"sig_1=:{b64encode(raw).decode()}:")
    return dict(zip(_NAMES, values, strict=True))


def _digest(body: bytes) -> str:
    return f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"


def _message(digest: str, parameters: str) -> bytes:
    return f'"content-digest": {digest}\n"@signature-params": {parameters}'.encode("latin-1")
