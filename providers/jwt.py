"""Any sender that sends a signed token (JWS, JWT), in a header or as the body, described on the source: without code.

    jwt = { in = "header:X-Jwt", algorithms = ["RS256"], body_hash = "body_sha256", id = "$.id", type = "$.event" }
    jwt = { in = "header:X-Jws", algorithms = ["RS512"], detached = true, needs = [], id = "$.id", type = "$.event" }
    jwt = { in = "body", algorithms = ["ES256"], jwks = "https://acme.example/jwks", id = "$.jti", type = "$.type" }

in (required) is "header:Name", "bearer" (the header `Authorization`), "body" (which is the token, and whose claims are
the event) or "$.path", the field of a JSON body that holds the token, of which nothing else is taken. algorithms
(required) lists what may have signed: some of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512 and EdDSA,
or some of HS256, HS384 and HS512, where the secret is shared. A token that names another is refused, and so is `none`;
a public key is never taken for a shared secret. The secret is the sender's public key (PEM, JWK or a JWK set); with
jwks, the https URL of its JWK set, a source needs none: it is fetched as for `signed`, and the token's `kid` says which
of its keys. Keys that a token brings along, or links to, are not looked at.

A token in a header must speak of the body: body_hash names the claim with its hash, or is a table { claim, encoding
(hex, base64, base64url), hash (sha256, sha384, sha512) }; detached = true says that the body is the token's payload; or
body_is_unsigned = true, that it proves who sends and nothing more. issuer and audience are what `iss` and `aud` must
be (a text, or a list of which one will do); set both where a sender signs for all its customers with one key. needs
lists the times that must be there, ["exp"] unless said otherwise, of exp, nbf and iat; those that are there always
count. tolerance is how old `iat` may be, in seconds, and leeway (60) how far clocks may differ. A token that says only
until when it is good may say so for 30 days.

id and type (required), account and occurred_at are places: "$.path" (of the claims, where the token is or is in the
body), "header:Name", "query:name", and of all but the id "fixed:text"; id may also be "fingerprint". A list of places
counts by the first that is there. Of a token in a header, account and occurred_at may be "claim:name" besides, and the
id "claim:jti". volatile, period, challenge, methods and signs_text are as for `hmac`.

https://datatracker.ietf.org/doc/html/rfc8725
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from hookonce.providers import kit

declared = kit.declared_options

_AGAIN: Final = ("$.exp", "$.nbf", "$.iat", "$.jti")
"""What a token says of itself, and not of the event: another attempt may have another."""


def configure(options: Mapping[str, Any]) -> kit.Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = kit.Options(options, "jwt")
    scheme = kit.key_pair_options.jwt_scheme(given)
    is_unsigned = given.flag("body_is_unsigned")
    kit.key_pair_options.expect_proof(given, scheme, is_unsigned=is_unsigned)
    claims = partial(kit.key_pair_options.claim_or_none, given, scheme.header)
    left_out = declared.volatile(given, "volatile")
    is_body = not scheme.header
    fingerprint = kit.data_digest(*_AGAIN, *left_out) if is_body else kit.body_digest(*left_out)
    events = kit.one_event(
        id=claims("id") or declared.id_place(given, "id", fingerprint),
        type=claims("type") or declared.place(given, "type"),
        account=claims("account") or declared.place_or_none(given, "account"),
        occurred_at=claims("occurred_at") or declared.place_or_none(given, "occurred_at"),
        read=scheme.said if is_body else kit.any_body,
    )
    within = declared.period(given, "period")
    declared.expect_ids_that_differ(given, "id", within)
    signs_text = given.flag("signs_text")
    delivered_by, handshake = declared.methods(given), kit.challenge(given, "challenge", None, None)
    given.done()
    return kit.Configured(
        sign=declared.signer_of(scheme.sign, given),
        events=events,
        sender=kit.Sender(
            scheme=scheme,
            id_is_signed=not is_unsigned
            and not any(
                str(each).startswith(("header:", "query:")) for each in declared.places_of(given, "id")
            ),
            body_is_unsigned=is_unsigned,
            signed_in_parts=bool(scheme.field),
            retry_horizon="whoever sends decides",
            identity=kit.key_pair_options.identity_of_token(given, within, is_body=is_body),
            id_period=within,
            volatile=left_out,
            methods=delivered_by,
            signs_text=signs_text,
            handshake=handshake,
        ),
    )
