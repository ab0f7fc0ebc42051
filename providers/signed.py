"""Any sender that signs with a private key, described on the source: Ed25519, ECDSA, RSA. It needs no code.

    signed = { algorithm = "ed25519", header = "X-Signature", encoding = "hex", id = "$.id", type = "$.event" }
    signed = { algorithm = "rsa-sha256", header = "X-S", jwks = "https://a.example/jwks", id = "$.id", type = "$.type" }

The secret is the sender's public key: PEM, that or DER in base64, the 32 bytes of an Ed25519 key in hex or base64, a
JWK, or a JWK set. It is no secret, but configured as one. With jwks, the https URL of the sender's JWK set, a source
needs none: the set is fetched under the rules for keys, kept for an hour, and fetched again when a delivery names a
key that it lacks (or, without key_id, the header with the key's name, when none of its keys fits), at most once a
minute. Where a source has secrets nothing is fetched.

algorithm (required) is ed25519, rsa-sha256, rsa-sha384, rsa-sha512, rsa-pss-sha256, rsa-pss-sha384, rsa-pss-sha512,
ecdsa-sha256 (P-256), ecdsa-sha384 (P-384) or ecdsa-sha512 (P-521), and never the delivery's choice. header (required),
prefix, encoding (base64, hex, base64url) and, of ECDSA, form (der, numbers) say what the signature looks like; key and
separator that it is one of a list (`t=1,v1=abc` has key = "v1", and values may be quoted). signed is the template:
{body}, {timestamp}, {url}, {path}, {method}, {params}, {sha256} (of the body, in hex; {sha256:base64}, {sha256:raw} for
its bytes), {header:name}; with hashed_by (sha256, sha384, sha512) the hash of that is signed. timestamp names its
header, or is a table { header or key, unit (s, ms, iso, any), tolerance in seconds }. id, type, account, occurred_at,
volatile, period, items, challenge, methods and signs_text are as for `hmac`.

https://datatracker.ietf.org/doc/html/rfc8032
"""

from collections.abc import Mapping
from typing import Any

from hookonce.providers import kit


def configure(options: Mapping[str, Any]) -> kit.Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = kit.Options(options, "signed")
    return kit.declared_options.by_signature(given, kit.key_pair_options.signed_scheme(given))
