"""FusionAuth sends a token (JWT) in `X-FusionAuth-Signature-JWT`, with the body's SHA-256 in `request_body_sha256`.

The option `algorithm` is that of the webhook's signing key: RS256 unless said otherwise, RS384, RS512, ES256, ES384,
ES512, or HS256, HS384, HS512. The secret is the public key (PEM, a JWK or a JWK set), or of the last three the shared
one; with the option `jwks`, the URL of your own `/.well-known/jwks.json`, a source needs none. The hash is in base64.
The id is `$.event.id`.

https://fusionauth.io/docs/extend/events-and-webhooks/signing
"""

from typing import Final

from hookonce.providers import kit

_ALGORITHMS: Final[tuple[kit.jws.Alg, ...]] = (
    *("RS256", "RS384", "RS512", "ES256", "ES384", "ES512"),
    *("HS256", "HS384", "HS512"),
)
events = kit.one_event(
    id="$.event.id", type="$.event.type", account="$.event.tenantId", occurred_at="$.event.createInstant"
)


@kit.with_options("fusionauth")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider for a signing key."""
    algorithm = given.choice("algorithm", _ALGORITHMS)
    jwks = kit.declared_options.https_url(given, "jwks")
    if jwks and kit.jws.is_shared(algorithm):
        given.mistakes.append(f"jwks has public keys, and {algorithm} needs a shared secret; leave one out")
    scheme = kit.Jwt(
        header="x-fusionauth-signature-jwt",
        algorithms=(algorithm,),
        body_hash=("request_body_sha256", "base64"),
        jwks=jwks,
    )
    return kit.Configured(
        verify=scheme.verify if kit.jws.is_shared(algorithm) else scheme.verify_by_set,
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=True,
            retry_horizon="unknown (no vendor documentation found)",
            identity=kit.told_apart_by("$.event.id"),
            setup_url="https://fusionauth.io/docs/extend/events-and-webhooks/",
        ),
    )
