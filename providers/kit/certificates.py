"""Certificates that senders sign with: the key in one, and a chain of them up to a root that we know."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from providers import Reason, Rejected
from providers.kit.asymmetric import Algorithm, PublicKey, public_key

_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"


def key_of_certificate(
    pem: bytes, algorithm: Algorithm, now: datetime | None, common_name: str = ""
) -> PublicKey:
    """The key in a certificate that is valid at `now` and whose common name ends with `common_name`.

    Raises: Rejected(bad_signature).
    """
    try:
        certificate = x509.load_pem_x509_certificate(pem[max(pem.find(_CERTIFICATE), 0) :])
        names = [
            str(name.value) for name in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        ]
        key = public_key(pem.decode("ascii"), algorithm)
    except ValueError:
        raise Rejected(Reason.BAD_SIGNATURE, "what the delivery names as its certificate is none") from None
    _expect_valid(certificate, now)
    if common_name and not any(name.endswith(common_name) for name in names):
        raise Rejected(Reason.BAD_SIGNATURE, f"the certificate is not of {common_name}")
    return key


def _expect_valid(certificate: x509.Certificate, now: datetime | None) -> None:
    if now and not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise Rejected(Reason.BAD_SIGNATURE, "the certificate is not valid at this time")


def expect_chain(certificates: Sequence[x509.Certificate], root: x509.Certificate, at: datetime) -> None:
    """Accept a chain, leaf first, whose last is issued by `root`; each but the leaf may issue certificates.

    Raises: Rejected(bad_signature).
    """
    for below, above in zip(certificates, [*certificates[1:], root], strict=True):
        _expect_valid(below, at)
        try:
            below.verify_directly_issued_by(above)
            constraints = above.extensions.get_extension_for_class(x509.BasicConstraints).value
        except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
            raise Rejected(Reason.BAD_SIGNATURE, "the certificates are no chain to a known root") from None
        if not constraints.ca:
            raise Rejected(Reason.BAD_SIGNATURE, "a certificate of the chain may not issue others")
    _expect_valid(root, at)
