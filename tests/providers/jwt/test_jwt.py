import hashlib
import hmac
import json
from base64 import b64decode, urlsafe_b64encode
from dataclasses import replace

import pytest

from hookonce.providers import KeyNeeded, Reason
from hookonce.providers.kit.conformance.cases import cases
from hookonce.providers.kit.crypto.jws import make
from hookonce.providers.kit.registry import load
from tests.support.captured import DELIVERIES

URL = "https://acme.example/jwks.json"
PARTNER = {"in": "header:X-Jwt", "algorithms": ["RS256"], "body_hash": "h", "id": "$.id", "type": "$.type"}
BODY = {key: value for key, value in PARTNER.items() if key != "body_hash"} | {"in": "body"}


@pytest.mark.parametrize(
    ("options", "mistakes"),
    [
        ({}, ["in is required", "algorithms is required", "id is required", "type is required"]),
        (PARTNER | {"algorithms": []}, ["algorithms is [], expected a list of some of HS256"]),
        (PARTNER | {"algorithms": ["none"]}, ["algorithms is ['none'], expected a list of some of"]),
        (PARTNER | {"algorithms": "RS256"}, ["algorithms is 'RS256', expected a list"]),
        (PARTNER | {"algorithms": ["RS256", "HS256"]}, ["algorithms mixes shared secrets"]),
        (PARTNER | {"algorithms": ["HS256"], "jwks": URL}, ["jwks has public keys"]),
        (PARTNER | {"in": "x"}, ["in is 'x', expected 'header:Name'"]),
        (PARTNER | {"in": "$.a[*]"}, ["in is '$.a[*]'"]),
        (PARTNER | {"detached": True}, ["a token in a header must speak of the body"]),
        ({**PARTNER, "body_hash": {"claim": "h", "hash": "md5"}}, ["hash is 'md5', expected one of sha256"]),
        (BODY | {"body_hash": "h"}, ["are for a token in a header; leave them out"]),
        (BODY | {"id": "claim:jti"}, ["id is 'claim:jti', and the claims are the body; write '$.jti'"]),
        (PARTNER | {"id": "claim:jti"}, ["others are taken for credentials"]),
        (PARTNER | {"type": "claim:t"}, ["type is 'claim:t', expected '$.path'"]),
        (PARTNER | {"needs": ["sub"]}, ["needs is ['sub'], expected a list of some of exp, nbf, iat"]),
        (PARTNER | {"tolerance": 300}, ["tolerance is about iat; add it to needs"]),
        (PARTNER | {"issuer": [1]}, ["issuer is [1], expected text"]),
        (PARTNER | {"jwks": "file:///etc/passwd"}, ["expected a whole URL"]),
    ],
)  # fmt: skip
def test_jwt_lists_every_mistake_in_its_options(options, mistakes):
    with pytest.raises(ValueError, match="jwt: ") as wrong:
        load("jwt", options=options)

    assert [mistake for mistake in mistakes if mistake not in str(wrong.value)] == []


def test_jwt_in_a_header_that_says_nothing_of_the_body_has_to_be_wanted():
    options = {key: value for key, value in PARTNER.items() if key != "body_hash"}

    with pytest.raises(ValueError, match="must speak of the body"):
        load("jwt", options=options)
    provider = load("jwt", options=options | {"body_is_unsigned": True})

    assert (provider.body_is_unsigned, provider.id_is_signed) == (True, False)


def case_of(name):
    return next(case for case in cases(DELIVERIES / "jwt") if case.name == f"jwt/{name}")


def segment(data):
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return urlsafe_b64encode(raw).decode().rstrip("=")


def put(case, token):
    """The delivery of a case with another token."""
    if "x-signature-jwt" not in case.delivery.headers:
        return replace(case.delivery, body=token.encode())
    return replace(case.delivery, headers={**case.delivery.headers, "x-signature-jwt": token})


def forged(case, header, key=b""):
    """A token with the claims of the case's and another header, signed with HMAC and a key of ours."""
    claims = case.delivery.headers["x-signature-jwt"].split(".")[1]
    signed = f"{segment(header)}.{claims}"
    return f"{signed}.{segment(hmac.digest(key, signed.encode(), 'sha256'))}"


def test_jwt_takes_no_public_key_for_a_shared_secret():
    case = case_of("rs256-body-hash")
    pem = case.secret
    shapes = [pem.encode(), pem.strip().encode(), b64decode("".join(pem.split("\n")[1:-2]))]
    tokens = [forged(case, {"alg": "HS256"}, key) for key in shapes]

    assert {case.verdict(put(case, token)) for token in tokens} == {Reason.BAD_SIGNATURE}
    with pytest.raises(ValueError, match="a public key is no secret"):
        load("jwt", options=PARTNER | {"algorithms": ["HS256"]}).check_secret(pem)


@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "", None, 1, ["RS256"], {"a": 1}, "rs256", "RS384", "ES256", "HS256"]
)
def test_jwt_takes_no_algorithm_that_is_not_listed(alg):
    case = case_of("rs256-body-hash")
    _, claims, signature = case.delivery.headers["x-signature-jwt"].split(".")
    head = segment({"alg": alg})

    for token in (f"{head}.{claims}.{signature}", f"{head}.{claims}.", f"{head}.{claims}"):
        assert case.verdict(put(case, token)) in {Reason.BAD_SIGNATURE, Reason.BAD_HEADER}


@pytest.mark.parametrize(
    "header",
    [
        {"jwk": {"kty": "oct", "k": ""}},
        {"jku": "https://evil.example/jwks.json"},
        {"x5u": "https://evil.example/a.pem"},
        {"x5c": ["MIIB"]},
        {"crit": ["exp"]},
        {"crit": ["b64"], "b64": False},
        {"crit": []},
        {"kid": 1},
        {"kid": ["k1"]},
        {"kid": {"a": 1}},
        {"kid": "../../etc/passwd"},
    ],
    ids=str,
)  # fmt: skip
def test_jwt_is_not_led_to_a_key_by_the_token(header):
    for name in ("rs256-body-hash", "body-fetched-set"):
        case = case_of(name)
        key = case.wrong
        token = make(
            {"jti": "1", "type": "a", "exp": 1767225900}, key, "EdDSA" if "set" in name else "RS256", header
        )

        assert case.verdict(put(case, token)) in {Reason.BAD_SIGNATURE, Reason.BAD_HEADER, Reason.BAD_BODY}


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": 1767225900}, None),
        ({}, Reason.BAD_HEADER),
        ({"exp": "1767225900"}, Reason.BAD_HEADER),
        ({"exp": True}, Reason.BAD_HEADER),
        ({"exp": None}, Reason.BAD_HEADER),
        ({"exp": 10**400}, Reason.BAD_HEADER),
        ({"exp": 1767225530}, Reason.STALE),
        ({"exp": 1767225600 + 31 * 86400}, Reason.STALE),
        ({"exp": 1767225900, "nbf": 1767225700}, Reason.STALE),
        ({"exp": 1767225900, "nbf": "soon"}, Reason.BAD_HEADER),
        ({"exp": 1767225900, "iat": 1767229900}, Reason.STALE),
    ],
    ids=lambda each: str(each)[:50],
)
def test_jwt_looks_at_each_time_that_is_there(claims, reason):
    case = next(each for each in cases(DELIVERIES / "jwt") if each.name == "jwt/body, signed by the kit")
    token = make({"jti": "1", "type": "a", **claims}, case.signing, "ES256")

    assert case.verdict(put(case, token)) == reason


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "acme", "aud": "us"}, None),
        ({"iss": "acme", "aud": ["others", "us"]}, None),
        ({"iss": "acme", "aud": ["others"]}, Reason.BAD_SIGNATURE),
        ({"iss": "acme"}, Reason.BAD_SIGNATURE),
        ({"iss": "acme", "aud": {"us": 1}}, Reason.BAD_SIGNATURE),
        ({"iss": "acme", "aud": "usa"}, Reason.BAD_SIGNATURE),
        ({"iss": ["acme"], "aud": "us"}, Reason.BAD_SIGNATURE),
        ({"aud": "us"}, Reason.BAD_SIGNATURE),
    ],
    ids=str,
)
def test_jwt_is_for_whom_and_from_whom_the_source_says(claims, reason):
    case = next(each for each in cases(DELIVERIES / "jwt") if each.name == "jwt/body, signed by the kit")
    provider = load("jwt", options=BODY | {"algorithms": ["ES256"], "issuer": "acme", "audience": "us"})
    token = make({"jti": "1", "exp": 1767225900, **claims}, case.signing, "ES256")

    assert replace(case, provider=provider).verdict(put(case, token)) == reason


def test_jwt_of_another_body_is_refused():
    case = case_of("rs256-body-hash")

    assert case.verdict(replace(case.delivery, body=b"{}")) == Reason.BAD_SIGNATURE
    assert hashlib.sha256(case.delivery.body).hexdigest() in str(
        b64decode(case.delivery.headers["x-signature-jwt"].split(".")[1] + "==")
    )


def test_jwt_names_its_key_and_only_that_set_is_asked_for():
    case = case_of("body-fetched-set")

    with pytest.raises(KeyNeeded, match=r"^https://acme\.example/jwks\.json$"):
        case.provider.verify(case.delivery, [], case.now, keys=None)
    with pytest.raises(KeyNeeded):
        case.provider.verify(case.delivery, [], case.now, keys={URL: b'{"keys": []}'})
    assert case.provider.fetches == (r"https://acme\.example/jwks\.json",)


def test_jwt_that_names_no_listed_algorithm_costs_no_fetch():
    case = case_of("body-fetched-set")
    token = make({"jti": "1", "exp": 1767225900}, b"x" * 32, "HS256")

    assert case.verdict(put(case, token)) == Reason.BAD_SIGNATURE
