"""Certificates that senders sign with: the key in one, and a chain of them up to a root that we know."""

import re
from base64 import b64decode
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from hookonce.providers import Reason, Rejected
from hookonce.providers.kit.crypto.public_keys import Algorithm, PublicKey, public_key

_CHAIN_LENGTH: Final = 3
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_BLOCK: Final = re.compile("-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def key_of_certificate(pem: bytes, algorithm: Algorithm, at: datetime, common_name: str = "") -> PublicKey:
    """Return the key of a certificate that was valid `at` that time and whose common name ends with `common_name`.

    Raises: Rejected(bad_signature).
    """
    try:
        certificate = x509.load_pem_x509_certificate(pem[max(pem.find(_CERTIFICATE), 0) :])
        names = [
            str(name.value) for name in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        ]
        key = public_key(pem.decode("ascii"), algorithm)
    except Exception:  # noqa: BLE001  as below
        raise Rejected(Reason.BAD_SIGNATURE, "what the delivery names as its certificate is none") from None
    _expect_valid(certificate, at)
    if common_name and not any(name.endswith(common_name) for name in names):
        raise Rejected(Reason.BAD_SIGNATURE, f"the certificate is not of {common_name}")
    return key


def _expect_valid(certificate: x509.Certificate, at: datetime) -> None:
    if not certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc:
        raise Rejected(Reason.BAD_SIGNATURE, "the certificate was not valid at the signed time")


class Root(NamedTuple):
    """A root certificate that we know, by the SHA-256 of its DER in hex."""

    fingerprint: str

    @classmethod
    def of(cls, pem: str) -> "Root":
        """Return the root in PEM, the last certificate of a chain. Raises: ValueError, IndexError for none."""
        der = b64decode(x5c_of(pem)[-1], validate=True)
        return cls(x509.load_der_x509_certificate(der).fingerprint(SHA256()).hex())


def x5c_of(pem: str) -> list[str]:
    """Return the certificates among PEM blocks, spelled as in a token's `x5c`."""
    return ["".join(block.split()) for block in _BLOCK.findall(pem)]


def chain_of(given: object) -> list[x509.Certificate]:
    """Return the three certificates of a token's `x5c`: leaf, intermediate, root. Raises: Rejected(bad_signature)."""
    try:
        few = given[: _CHAIN_LENGTH + 1] if isinstance(given, list) else []
        chain = [x509.load_der_x509_certificate(b64decode(text, validate=True)) for text in few]
    except Exception:  # noqa: BLE001  of bad certificates it raises, and warns, in many ways
        chain = []
    if len(chain) != _CHAIN_LENGTH:
        raise Rejected(Reason.BAD_SIGNATURE, "the token has no chain of three certificates")
    return chain


def expect_chain(
    chain: Sequence[x509.Certificate], roots: Sequence[Root], marks: Sequence[str], at: datetime
) -> None:
    """Accept a chain that ends in one of `roots`, was valid `at` that time, and carries `marks`.

    marks: the extensions that the leaf and the next certificate must have. Raises: Rejected(bad_signature).
    """
    if Root(chain[-1].fingerprint(SHA256()).hex()) not in roots:
        raise Rejected(Reason.BAD_SIGNATURE, "the certificates do not lead to a root that we know")
    for certificate in chain:
        _expect_valid(certificate, at)
    try:
        for below, above in pairwise(chain):
            below.verify_directly_issued_by(above)
        issuers = [
            each.extensions.get_extension_for_class(x509.BasicConstraints).value.ca for each in chain[1:]
        ]
        for certificate, mark in zip(chain, marks, strict=False):
            certificate.extensions.get_extension_for_oid(x509.ObjectIdentifier(mark))
    except Exception:  # noqa: BLE001  as above; InvalidSignature and ExtensionNotFound among them
        raise Rejected(Reason.BAD_SIGNATURE, "the certificates are not a chain of this sender's") from None
    if not all(issuers):
        raise Rejected(Reason.BAD_SIGNATURE, "a certificate of the chain may not issue others")


def key_in(certificate: x509.Certificate, algorithm: Algorithm) -> PublicKey:
    """Return the key of a certificate. Raises: Rejected(bad_signature) for one of another kind."""
    try:
        return public_key(certificate.public_bytes(Encoding.PEM).decode(), algorithm)
    except Exception:  # noqa: BLE001  as above
        raise Rejected(Reason.BAD_SIGNATURE, "the certificate's key is of another kind") from None
