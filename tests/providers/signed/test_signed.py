import json
from base64 import b64encode
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from hookonce.providers import Delivery, KeyNeeded, Reason
from hookonce.providers.kit.conformance.cases import cases, refusal
from hookonce.providers.kit.crypto.public_keys import new_key
from hookonce.providers.kit.registry import load
from tests.support.captured import DELIVERIES
from tests.support.senders import NOW

URL = "https://acme.example/jwks.json"
PARTNER = {"algorithm": "ed25519", "header": "X-Sig", "id": "$.id", "type": "$.type"}


@pytest.mark.parametrize(
    ("options", "mistakes"),
    [
        ({}, ["algorithm is required", "header is required", "id is required", "type is required"]),
        (PARTNER | {"algorithm": "hmac-sha256"}, ["algorithm is 'hmac-sha256', expected one of ed25519, rsa-sha256"]),
        (PARTNER | {"algorithm": "rsa-sha1"}, ["algorithm is 'rsa-sha1', expected one of"]),
        (PARTNER | {"form": "numbers"}, ["only an ECDSA signature has forms"]),
        (PARTNER | {"signed": "{timestamp}"}, ["signed leaves out the body"]),
        (PARTNER | {"timestamp": "X-T"}, ["a signed time needs a timestamp and a template with {timestamp}"]),
        (PARTNER | {"jwks": "http://acme.example/"}, ["jwks is 'http://acme.example/', expected a whole URL"]),
        (PARTNER | {"jwks": "https://u:p@acme.example/"}, ["expected a whole URL"]),
        (PARTNER | {"jwks": "https://acme.example:8443/"}, ["expected a whole URL"]),
        (PARTNER | {"jwks": "https://acme.example/#a"}, ["expected a whole URL"]),
        (PARTNER | {"jwks": "https:///a"}, ["expected a whole URL"]),
        (PARTNER | {"hashed_by": "md5"}, ["hashed_by is 'md5', expected one of sha256"]),
        (PARTNER | {"header": "X Sig", "key_id": "K:"}, ["header is 'X Sig', expected a header's name", "key_id is"]),
        (PARTNER | {"timestamp": {"key": "t"}, "signed": "{timestamp}{body}"}, ["the signature under no key"]),
        (PARTNER | {"id": "fixed:one"}, ["id is 'fixed:one'"]),
    ],
)  # fmt: skip
def test_signed_lists_every_mistake_in_its_options(options, mistakes):
    with pytest.raises(ValueError, match="signed: ") as wrong:
        load("signed", options=options)

    assert [mistake for mistake in mistakes if mistake not in str(wrong.value)] == []


@pytest.mark.parametrize(
    ("algorithm", "other"),
    [
        ("ed25519", "rsa-sha256"),
        ("rsa-sha256", "ed25519"),
        ("ecdsa-sha256", "ecdsa-sha384"),
        ("ecdsa-sha512", "ecdsa-sha256"),
    ],
)
def test_signed_takes_no_key_of_another_kind(algorithm, other):
    provider = load("signed", options=PARTNER | {"algorithm": algorithm})

    assert provider.check_secret(new_key(algorithm)) is None
    with pytest.raises(ValueError, match="the key is not usable; expected"):
        provider.check_secret(new_key(other))


@pytest.mark.parametrize("small", [0, 1, 2**255 - 20, 2**255 - 19, 2**255])
def test_signed_takes_no_key_under_which_anybody_can_sign(small):
    provider = load("signed", options=PARTNER)
    forged = {"x-sig": b64encode(bytes([1]) + bytes(63)).decode()}
    key = small.to_bytes(32, "little").hex()

    with pytest.raises(ValueError, match="the key is not usable; expected an Ed25519 public key"):
        provider.check_secret(key)
    assert (
        refusal(lambda: provider.verify(Delivery("POST", "", forged, b"{}"), [key], NOW)) == Reason.NO_SECRET
    )


def test_signed_takes_no_rsa_key_that_can_be_factored():
    small = rsa.generate_private_key(65537, 1024).public_key()  # noqa: S505  that is the point
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    with pytest.raises(ValueError, match="of 2048 bits or more"):
        load("signed", options=PARTNER | {"algorithm": "rsa-sha256"}).check_secret(
            small.public_bytes(*form).decode()
        )


def test_signed_reads_quoted_values_of_a_list_behind_the_name_of_its_scheme():
    options = PARTNER | {"key": "signature", "timestamp": {"key": "created"}, "signed": "{timestamp}.{body}"}
    provider, key, body = load("signed", options=options), new_key("ed25519"), b'{"id":"1","type":"a"}'
    _, right = provider.sign(body, key, NOW)["x-sig"].split(",signature=")

    def verdict(value):
        return refusal(lambda: provider.verify(Delivery("POST", "", {"x-sig": value}, body), [key], NOW))

    assert verdict(f'Signature keyId="k1", created={NOW.timestamp():.0f}, signature="{right}"') is None
    assert verdict(f'created="{NOW.timestamp():.0f}",signature="{right}') == Reason.BAD_HEADER
    assert verdict(f'created={NOW.timestamp():.0f},signature="{right[:-4]}AAA="') == Reason.BAD_SIGNATURE


def case_of(name):
    return next(case for case in cases(DELIVERIES / "signed") if case.name == f"signed/{name}")


def verdict_with(case, document):
    """What becomes of the delivery of a case where its set is another document."""
    keys = {URL: document if isinstance(document, bytes) else json.dumps(document).encode()}
    return replace(case, keys=keys).verdict(case.delivery)


def test_signed_with_a_fetched_set_asks_for_it_and_nothing_else():
    case = case_of("ed25519-fetched-set")

    with pytest.raises(KeyNeeded, match=r"^https://acme\.example/jwks\.json$"):
        case.provider.verify(case.delivery, [], case.now, keys=None)
    assert case.provider.fetches == (r"https://acme\.example/jwks\.json",)


def test_signed_fetches_nothing_where_a_key_is_pinned():
    case = case_of("ed25519-fetched-set")

    assert case.verdict(case.delivery, [new_key("ed25519")]) == Reason.BAD_SIGNATURE


@pytest.mark.parametrize("name", ["ed25519-fetched-set", "ed25519-fetched-set-without-key-id"])
def test_signed_asks_again_for_a_set_that_lacks_the_key(name):
    case = case_of(name)
    other = json.dumps({"keys": [jwk_of(case) | {"kid": "k2", "x": "A" * 42 + "E"}]}).encode()

    with pytest.raises(KeyNeeded):
        case.provider.verify(case.delivery, [], case.now, keys={URL: other})


def jwk_of(case):
    return json.loads(case.keys[URL])["keys"][0]


HOSTILE = [
    b"",
    b"\xff\xfe",
    b"[]",
    b"null",
    b'"keys"',
    b"{",
    b"[" * 100_000,
    {},
    {"keys": None},
    {"keys": {}},
    {"keys": "k1"},
    {"keys": [None, 1, "a", []]},
    {"keys": [{}]},
    {"keys": [{"kid": "k1"}]},
    {"keys": [{"kid": "k1", "kty": "oct", "k": "c2VjcmV0"}]},
    {"keys": [{"kid": "k1", "kty": "RSA", "n": "AQ", "e": "AQ"}]},
    {"keys": [{"kid": "k1", "kty": "RSA", "n": "_" * 200_000, "e": "AQAB"}]},
    {"keys": [{"kid": "k1", "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]},
    {"keys": [{"kid": "k1", "kty": "EC", "crv": ["P-256"], "x": 1, "y": 2}]},
    {"keys": [{"kid": "k1", "kty": "OKP", "crv": "Ed25519", "x": "A" * 41}]},
    {"keys": [{"kid": "k1", "kty": "OKP", "crv": "X25519", "x": "A" * 43}]},
]


@pytest.mark.parametrize("document", HOSTILE, ids=lambda each: str(each)[:60])
@pytest.mark.parametrize("name", ["ed25519-fetched-set", "ed25519-fetched-set-without-key-id"])
def test_signed_accepts_nothing_by_a_hostile_set(name, document):
    assert verdict_with(case_of(name), document) == Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    "changed",
    [{"use": "enc"}, {"alg": "RS256"}, {"alg": None}, {"key_ops": ["encrypt"]}, {"expired_at": 1}, {"kid": 1}],
)  # fmt: skip
def test_signed_takes_no_key_of_a_set_that_is_for_something_else(changed):
    case = case_of("ed25519-fetched-set")

    assert verdict_with(case, {"keys": [jwk_of(case)]}) is None
    assert verdict_with(case, {"keys": [jwk_of(case) | changed]}) == Reason.BAD_SIGNATURE


def test_signed_tries_few_keys_of_a_set_that_has_thousands():
    case = case_of("ed25519-fetched-set-without-key-id")
    other = jwk_of(case) | {"x": "A" * 42 + "E"}

    assert verdict_with(case, {"keys": [other] * 15 + [jwk_of(case)]}) is None
    assert verdict_with(case, {"keys": [other] * 3000 + [jwk_of(case)]}) == Reason.BAD_SIGNATURE


def test_signed_looks_at_sixteen_signatures_of_a_list():
    provider = load("signed", options=PARTNER | {"separator": ","})
    key, body = new_key("ed25519"), b'{"id":"1","type":"a"}'
    right = provider.sign(body, key, NOW)["x-sig"]

    def verdict(value):
        return refusal(lambda: provider.verify(Delivery("POST", "", {"x-sig": value}, body), [key], NOW))

    assert verdict(",".join(["AAAA"] * 15 + [right])) is None
    assert verdict(",".join(["AAAA"] * 16 + [right])) == Reason.BAD_SIGNATURE
