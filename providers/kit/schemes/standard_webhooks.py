"""Standard Webhooks, as sent by Svix's customers, OpenAI, GitLab and many others.

Signed is `<id>.<timestamp>.<body>`. The signature header is a list, separated by spaces: `v1,<base64>` is
HMAC-SHA256, `v1a,<base64>` Ed25519; there are several during a rotation, and versions that we don't know are
passed over. The id stays the same on every attempt, the timestamp does not.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Unpack

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.crypto.secret_keys import Codec, check_key, key_of, keys_of, mac_of
from hookonce.providers.kit.crypto.signature_text import Speller, speller
from hookonce.providers.kit.events.fields import Extractor
from hookonce.providers.kit.events.identity import Identity, told_apart_by
from hookonce.providers.kit.reading.bodies import header_of, octets
from hookonce.providers.kit.signing.timestamps import TOLERANCE, Timestamp
from hookonce.providers.kit.signing.verdict import MAX_SIGNATURES, SignOptions, expect_match, made_id

_MAC: Final[Speller] = speller("base64", 32)
_ED25519: Final[Speller] = speller("base64", 64)
_PUBLIC: Final = "whpk_"
_PRIVATE: Final = "whsk_"
_SPECIFICATION: Final = (
    "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md"
)


@dataclass(kw_only=True, eq=False)
class StandardWebhooks:
    """The scheme. A secret is `whsec_<base64>`, or `whpk_<base64>`: the public key of a sender of v1a.

    vendors: prefixes of the three headers; the first one that was sent counts
    secret: the codec of secrets that are not public keys; some adopters sign with the text as it is (`raw`)
    forms: every secret in the codec that a configured text may stand for, the one that signs first
    """

    vendors: tuple[str, ...] = ("webhook", "svix")
    secret: Codec = "whsec"  # noqa: S105  a codec's name
    forms: Callable[[str], Sequence[str]] = lambda secret: (secret,)
    tolerance: timedelta = TOLERANCE
    _timestamps: dict[str, Timestamp] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._timestamps = {
            vendor: Timestamp(
                header=f"{vendor}-timestamp",
                tolerance=self.tolerance,
                ahead=max(self.tolerance, TOLERANCE),
            )
            for vendor in self.vendors
        }

    @property
    def id(self) -> Extractor:
        """The signed id: the one beside the signature that counts. Another beside it is anybody's."""
        return Extractor(
            lambda view: view.delivery.headers.get(f"{self._counts(view.delivery)}-id"),
            f"header {' or '.join(f'{vendor}-id' for vendor in self.vendors)}",
            Reason.MISSING_HEADER,
            Reason.BAD_HEADER,
        )

    @property
    def identity(self) -> Identity:
        """The id tells events apart; the specification says that it stays on a retry, and that the time does not."""
        places = (f"header {vendor}-id" for vendor in self.vendors)
        return told_apart_by(*places, new_on_retry=("signed time",), known_from=_SPECIFICATION)

    @property
    def proof(self) -> tuple[str, ...]:
        """The places of the signatures."""
        return tuple(f"header:{vendor}-signature" for vendor in self.vendors)

    @property
    def signs_body(self) -> bool:
        """True: all of it is signed."""
        return True

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError with what a right secret or public key looks like."""
        if secret.startswith((_PUBLIC, _PRIVATE)):
            _public(secret)
        else:
            check_key(self.forms(secret)[0], self.secret)

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` if one of its signatures is right under one of `secrets`. Raises: Rejected."""
        keys, public = self._keys(secrets)
        vendor = self._vendor(delivery)
        timestamp = self._timestamps[vendor]
        parts = [
            header_of(delivery.headers, (f"{vendor}-{part}",)) for part in ("id", "timestamp", "signature")
        ]
        seconds = timestamp.parse(parts[1][1])
        macs, signatures = _signatures(*parts[2])
        message = b"%b.%b.%b" % (octets(*parts[0]), octets(*parts[1]), delivery.body)
        if not any(_verifies(key, signature, message) for key in public for signature in signatures):
            expect_match(macs, [_MAC.folded(mac_of(key, message, "sha256")) for key in keys])
        timestamp.check(seconds, now)

    def sign(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
        """Return the three headers; v1a for a private key (`whsk_`), v1 otherwise. Raises: ValueError."""
        vendor = self.vendors[0]
        number = options.get("event_id") or made_id(body)
        written = self._timestamps[vendor].write(now)
        message = b"%b.%b.%b" % (number.encode("latin-1"), written.encode(), body)
        return {
            f"{vendor}-id": number,
            f"{vendor}-timestamp": written,
            f"{vendor}-signature": self._signature(secret, message),
        }

    def _signature(self, secret: str, message: bytes) -> str:
        if secret.startswith(_PUBLIC):
            msg = "a public key (whpk_) can't sign; expected the private key (whsk_) or a secret (whsec_)"
            raise ValueError(msg)
        if secret.startswith(_PRIVATE):
            return "v1a," + b64encode(_private(secret).sign(message)).decode()
        return "v1," + _MAC.spell(mac_of(key_of(self.forms(secret)[0], self.secret), message, "sha256"))

    def _keys(self, secrets: Sequence[str]) -> tuple[Sequence[bytes], list[Ed25519PublicKey]]:
        public = [key for secret in secrets if (key := _public_or_none(secret))]
        texts = [secret for secret in secrets if not secret.startswith((_PUBLIC, _PRIVATE))]
        shared = [form for secret in texts for form in self.forms(secret)]
        try:
            return keys_of(shared, self.secret), public
        except Rejected:
            if not public:
                raise
            return [], public

    def _counts(self, delivery: Delivery) -> str:
        """Return the vendor whose signature was sent, or (a stored delivery may lack it) whose id was."""
        sent = [f"{vendor}-{part}" for part in ("signature", "id") for vendor in self.vendors]
        name = next((name for name in sent if name in delivery.headers), sent[0])
        return name.rpartition("-")[0]

    def _vendor(self, delivery: Delivery) -> str:
        name, _ = header_of(delivery.headers, tuple(f"{vendor}-signature" for vendor in self.vendors))
        return name.removesuffix("-signature")


def _signatures(name: str, value: str) -> tuple[list[bytes], list[bytes]]:
    """Return the v1 (folded) and the v1a signatures (decoded) among the first 16 entries of a header."""
    macs: list[bytes] = []
    signatures: list[bytes] = []
    for entry in value.split(" ", MAX_SIGNATURES)[:MAX_SIGNATURES]:
        version, _, text = entry.partition(",")
        if version == "v1" and (folded := _MAC.fold(text)):
            macs.append(folded)
        elif version == "v1a" and (folded := _ED25519.fold(text)):
            decoded = b64decode(folded + b"==")
            signatures += [decoded] if _ED25519.folded(decoded) == folded else []  # stray bits at the end
    if not macs and not signatures:
        raise Rejected(Reason.BAD_HEADER, f"header {name} holds neither a v1 nor a v1a signature")
    return macs, signatures


def _verifies(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _private(secret: str) -> Ed25519PrivateKey:
    """Return the private key behind `whsk_`: a seed of 32 bytes, or 64 with the public key after it."""
    return Ed25519PrivateKey.from_private_bytes(key_of(secret.removeprefix(_PRIVATE), "base64")[:32])


def _public(secret: str) -> Ed25519PublicKey:
    if secret.startswith(_PRIVATE):
        return _private(secret).public_key()
    return Ed25519PublicKey.from_public_bytes(key_of(secret.removeprefix(_PUBLIC), "base64"))


def _public_or_none(secret: str) -> Ed25519PublicKey | None:
    try:
        return _public(secret) if secret.startswith((_PUBLIC, _PRIVATE)) else None
    except ValueError:
        return None
