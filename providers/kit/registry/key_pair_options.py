"""Options of a source whose sender has a key pair: what a signature looks like, and what a token says.

As in `declared_options`, each function takes its options from `Options`, which keeps the mistakes.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from hookonce.providers.kit.crypto.jws import ALGS, Alg, is_shared
from hookonce.providers.kit.crypto.public_keys import ALGORITHMS
from hookonce.providers.kit.crypto.signature_text import ENCODINGS, Encoding
from hookonce.providers.kit.events.fields import Extractor
from hookonce.providers.kit.events.identity import Identity, told_apart_by
from hookonce.providers.kit.reading import json_paths
from hookonce.providers.kit.registry.declared_options import https_url, identity, places_of, timestamp
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.schemes.jwt import Jwt, claim
from hookonce.providers.kit.schemes.public_key_signature import FORMS, Signed
from hookonce.providers.kit.signing.message_template import signs_body

_SIGNATURE_ENCODINGS: Final[tuple[Encoding, ...]] = ("base64", "hex", "base64url")
_IN_EXPECTED: Final = "expected 'header:Name', 'bearer', 'body' or '$.path' of the body"
_TIMES: Final = ("exp", "nbf", "iat")
_BODY_HASHES: Final = ("sha256", "sha384", "sha512")
_LONGEST: Final = timedelta(days=30)


def signed_scheme(given: Options) -> Signed:
    """Return the scheme that the options tell; what it is after a mistake is of no use, `given.done()` raises."""
    if given.take("algorithm") is None:
        given.mistakes.append(f"algorithm is required, one of {', '.join(ALGORITHMS)}")
    declared: dict[str, Any] = {
        "algorithm": given.choice("algorithm", ALGORITHMS),
        "header": given.header("header"),
        "encoding": given.choice("encoding", _SIGNATURE_ENCODINGS),
        "form": given.choice("form", FORMS),
        "prefix": given.text("prefix", ""),
        "key": given.text("key", ""),
        "separator": given.text("separator", ""),
        "signed": given.text("signed", "{body}"),
        "hashed_by": given.choice("hashed_by", _BODY_HASHES) if given.take("hashed_by") else "",
        "timestamp": timestamp(given, "timestamp"),
        "jwks": https_url(given, "jwks"),
        "key_id": given.header("key_id", ""),
    }
    if not signs_body(declared["signed"]):
        given.mistakes.append("signed leaves out the body; expected a template with {body}")
    try:
        return Signed(**declared)
    except ValueError as error:
        given.mistakes.append(str(error))
        return Signed(header="?", algorithm="ed25519")


def jwt_scheme(given: Options) -> Jwt:
    """Return the scheme that the options tell; what it is after a mistake is of no use, `given.done()` raises."""
    where = given.text("in")
    kind, _, name = where.partition(":")
    header = "authorization" if where == "bearer" else name if kind == "header" else ""
    given.arriving("in", header)
    field = where if where.startswith("$.") else ""
    if where and not (header or field or where == "body"):
        given.mistakes.append(f"in is {where!r}, {_IN_EXPECTED}")
    if field:
        _expect_path(given, field)
    tolerance = given.seconds("tolerance", 300) if given.take("tolerance") is not None else None
    return Jwt(
        header=header,
        prefix="Bearer " if where == "bearer" else "",
        field=field,
        detached=given.flag("detached"),
        algorithms=_algorithms(given),
        issuers=_listed(given, "issuer"),
        audiences=_listed(given, "audience"),
        **_body_hash(given),
        needs=_needs(given),
        leeway=timedelta(seconds=given.seconds("leeway", 60)),
        max_age=timedelta(seconds=tolerance) if tolerance else None,
        longest=_LONGEST,
        jwks=https_url(given, "jwks"),
    )


def _expect_path(given: Options, path: str) -> None:
    try:
        if not all(isinstance(step, str) for step in json_paths.parse(path)):
            given.mistakes.append(f"in is {path!r}, {_IN_EXPECTED}")
    except ValueError as error:
        given.mistakes.append(f"in: {error}")


def _algorithms(given: Options) -> tuple[Alg, ...]:
    value = given.take("algorithms")
    listed = value if isinstance(value, list) else []
    found = tuple(name for name in ALGS if name in listed)
    if not listed or len(found) != len(listed):
        said = "is required" if value is None else f"is {value!r}"
        given.mistakes.append(f"algorithms {said}, expected a list of some of {', '.join(ALGS)}")
    elif len({is_shared(name) for name in found}) > 1:
        given.mistakes.append(
            "algorithms mixes shared secrets (HS…) with public keys, and one could pass for the other; list one kind"
        )
    return found or ("RS256",)


def _listed(given: Options, name: str) -> tuple[str, ...]:
    """Return an option that is a text or a list of texts, empty if not given."""
    value = given.take(name, [])
    listed = [value] if isinstance(value, str) else value
    if isinstance(listed, list) and all(isinstance(each, str) and each for each in listed):
        return tuple(listed)
    given.mistakes.append(f"{name} is {value!r}, expected text or a list of texts")
    return ()


def _needs(given: Options) -> tuple[str, ...]:
    value = given.take("needs", ["exp"])
    if isinstance(value, list) and all(each in _TIMES for each in value):
        return tuple(value)
    given.mistakes.append(f"needs is {value!r}, expected a list of some of {', '.join(_TIMES)}")
    return ()


def _body_hash(given: Options) -> dict[str, Any]:
    value = given.take("body_hash")
    if value is None:
        return {}
    if not isinstance(value, (str, Mapping)):
        given.mistakes.append(f"body_hash is {value!r}, expected a claim's name or a table")
        return {}
    inner = Options({"claim": value} if isinstance(value, str) else value, "body_hash")
    found = (inner.text("claim"), inner.choice("encoding", ENCODINGS))
    hashed = inner.choice("hash", _BODY_HASHES)
    try:
        inner.done()
    except ValueError as error:
        given.mistakes.append(str(error))
    return {"body_hash": found, "hash": hashed}


def expect_proof(given: Options, scheme: Jwt, *, is_unsigned: bool) -> None:
    """Note a mistake where the token says nothing of the body and nobody has said so, or where two things are said."""
    says = bool(scheme.body_hash) + scheme.detached + is_unsigned
    if scheme.header and says != 1:
        given.mistakes.append(
            'a token in a header must speak of the body: expected one of body_hash = "claim", detached = true '
            "and, where it proves who sends and nothing more, body_is_unsigned = true"
        )
    if not scheme.header and says:
        given.mistakes.append(
            "body_hash, detached and body_is_unsigned are for a token in a header; leave them out"
        )
    if scheme.max_age and "iat" not in scheme.needs:
        given.mistakes.append("tolerance is about iat; add it to needs")
    if scheme.jwks and is_shared(scheme.algorithms[0]):
        given.mistakes.append("jwks has public keys, and algorithms are for a shared secret; leave one out")


def claim_or_none(given: Options, header: str, name: str) -> Extractor | None:
    """Return a place that is a claim, None for one that is not."""
    value = given.take(name)
    if not isinstance(value, str) or not value.startswith("claim:") or value == "claim:":
        return None
    if not header:
        given.mistakes.append(f"{name} is {value!r}, and the claims are the body; write '$.{value[6:]}'")
    elif name == "type" or (name == "id" and (value != "claim:jti" or "signature" not in header.lower())):
        given.mistakes.append(
            f"{name} is {value!r}, expected '$.path', 'header:Name' or 'query:name': only 'claim:jti' may be an id, "
            "where the header is called a signature; others are taken for credentials and not kept with the event"
        )
    return claim(value[6:], header.lower())


def identity_of_token(given: Options, within: timedelta | None, *, is_body: bool) -> Identity:
    """Return how events are told apart, whose id may be a claim of the token that the body is, or holds."""
    told = [str(each) for each in places_of(given, "id")]
    if is_body and not within and all(each.startswith("$.") for each in told):
        return told_apart_by(*(f"claim {each[2:]}" for each in told))
    return identity(given, "id", within)
