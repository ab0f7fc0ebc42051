"""FusionAuth sends a token (JWT) in `X-FusionAuth-Signature-JWT`, with the body's SHA-256 in `request_body_sha256`.

The option `algorithm` is that of the webhook's signing key: RS256 unless said otherwise, RS384, RS512, ES256, ES384,
ES512, or HS256, HS384, HS512. The secret is the public key (PEM, a JWK or a JWK set), or of the last three the shared
one; with the option `jwks`, the URL of your own `/.well-known/jwks.json`, a source needs none. The hash is in base64.
The id is `$.event.id`.

https://fusionauth.io/docs/extend/events-and-webhooks/signing
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from hookonce.providers.kit import Configured, Sender, field, one_event, signer, told_apart_by
from hookonce.providers.kit.crypto.jws import Alg, is_shared
from hookonce.providers.kit.registry.declared_options import https_url
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.schemes.jwt import Jwt

_ALGORITHMS: Final[tuple[Alg, ...]] = (
    *("RS256", "RS384", "RS512", "ES256", "ES384", "ES512"),
    *("HS256", "HS384", "HS512"),
)
events = one_event(
    id=field("$.event.id"),
    type=field("$.event.type"),
    account=field("$.event.tenantId"),
    occurred_at=field("$.event.createInstant"),
)


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider for a signing key. Raises: ValueError listing every mistake."""
    given = Options(options, "fusionauth")
    algorithm = given.choice("algorithm", _ALGORITHMS)
    jwks = https_url(given, "jwks")
    if jwks and is_shared(algorithm):
        given.mistakes.append(f"jwks has public keys, and {algorithm} needs a shared secret; leave one out")
    given.done()
    scheme = Jwt(
        header="x-fusionauth-signature-jwt",
        algorithms=(algorithm,),
        body_hash=("request_body_sha256", "base64"),
        jwks=jwks,
    )
    return Configured(
        verify=scheme.verify if is_shared(algorithm) else scheme.verify_by_set,
        sign=signer(scheme.sign),
        events=events,
        sender=Sender(
            id_is_signed=True,
            retry_horizon=None,
            horizon_unknown="not known: no statement of its own is at hand",
            identity=told_apart_by("$.event.id"),
            fetches=(re.escape(jwks),) if jwks else (),
            needs_secret=not jwks,
            check_secret=scheme.check_secret,
            setup_url="https://fusionauth.io/docs/extend/events-and-webhooks/",
        ),
    )
