import json
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hookonce.providers import Delivery, KeyNeeded, Reason, Rejected
from hookonce.providers.kit.crypto.fetched_keys import owner_of
from hookonce.providers.kit.crypto.jws import keys_in, make
from hookonce.providers.kit.crypto.public_keys import public_key, signature_of, verifies
from hookonce.providers.kit.registry import load
from hookonce.providers.kit.schemes.jwt import Jwt
from hookonce.providers.kit.signing.composite_secrets import parts_of
from tests.support.captured import captured_as

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = Ed25519PrivateKey.generate()


def pem(key, *, private=False):
    if private:
        form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        return key.private_bytes(serialization.Encoding.PEM, form, plain).decode()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def raw(key):
    return key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def b64url(data):
    return urlsafe_b64encode(data).rstrip(b"=").decode()


FORMS = [
    ("rsa-sha256", RSA, pem(RSA)),
    ("rsa-sha256", RSA, pem(RSA).replace("\n", "\\n")),
    ("rsa-sha256", RSA, pem(RSA).replace("\n", "")),
    ("rsa-sha256", RSA, pem(RSA).replace("\n", " ")),
    ("rsa-sha256", RSA, "".join(pem(RSA).splitlines()[1:-1])),
    ("rsa-sha256", RSA, pem(RSA, private=True)),
    ("rsa-sha256", RSA, b64encode(pem(RSA).encode()).decode()),
    ("ecdsa-sha256", EC, pem(EC)),
    ("ecdsa-sha1", EC, "".join(pem(EC).splitlines()[1:-1])),
    ("ed25519", ED, pem(ED)),
    ("ed25519", ED, raw(ED).hex()),
    ("ed25519", ED, raw(ED).hex().upper()),
    ("ed25519", ED, b64encode(raw(ED)).decode()),
    ("ed25519", ED, json.dumps({"kty": "OKP", "crv": "Ed25519", "x": b64url(raw(ED))})),
]


@pytest.mark.parametrize(("algorithm", "key", "text"), FORMS, ids=map(str, range(len(FORMS))))
def test_key_is_read_in_each_of_its_forms(algorithm, key, text):
    signature = signature_of(pem(key, private=True), algorithm, b"message")

    assert verifies(public_key(text, algorithm), algorithm, signature, b"message")
    assert not verifies(public_key(text, algorithm), algorithm, signature, b"massage")


OTHER_KINDS = [
    ("rsa-sha256", pem(EC)),
    ("ecdsa-sha256", pem(RSA)),
    ("ed25519", pem(RSA)),
    ("ecdsa-sha256", pem(ec.generate_private_key(ec.SECP384R1()))),
    ("rsa-sha256", ""),
    ("rsa-sha256", "whsec_c2VjcmV0"),
    ("ed25519", "00" * 31),
    ("rsa-sha256", "-----BEGIN PUBLIC KEY-----AAAA-----END PUBLIC KEY-----"),
]


@pytest.mark.parametrize(("algorithm", "text"), OTHER_KINDS, ids=map(str, range(len(OTHER_KINDS))))
def test_key_of_another_kind_is_refused_without_showing_it(algorithm, text):
    with pytest.raises(ValueError, match="expected") as error:
        public_key(text, algorithm)

    assert not text or text not in str(error.value)


def delivery(token, body=b"{}", url="https://h.example/x"):
    return Delivery("POST", url, {"authorization": token}, body)


def verdict(scheme, token, secrets, now=NOW, **said):
    try:
        scheme.verify(delivery(token, **said), secrets, now)
    except Rejected as error:
        return error.reason
    return None


HS = Jwt(issuers=("acme",), needs=("exp",), body_hash=("sha256", "hex"))
KEY = "a-secret-of-32-bytes-or-so-for-us"
CLAIMS = {"iss": "acme", "exp": int(NOW.timestamp()) + 60, "sha256": sha256(b"{}").hexdigest()}


def token(header=None, key=b"", algorithm="HS256", **changes):
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    return make(claims, key or KEY.encode(), algorithm, header or {})


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (token(), None),
        ("Bearer " + token(), None),
        ("bearer " + token(), None),
        (token({"jku": "https://evil.example", "x5u": "https://evil.example", "kid": "x"}), None),
        (token(key=b"another"), Reason.BAD_SIGNATURE),
        (token(algorithm="HS512"), Reason.BAD_SIGNATURE),
        (token(iss="other"), Reason.BAD_SIGNATURE),
        (token(iss=None), Reason.BAD_SIGNATURE),
        (token(sha256=None), Reason.BAD_SIGNATURE),
        (token(sha256=sha256(b"x").hexdigest()), Reason.BAD_SIGNATURE),
        (token(sha256=1), Reason.BAD_SIGNATURE),
        (token(exp=None), Reason.BAD_HEADER),
        (token(exp="1767225660"), Reason.BAD_HEADER),
        (token(exp=True), Reason.BAD_HEADER),
        (token(exp=10**400), Reason.BAD_HEADER),
        (token(exp=int(NOW.timestamp())), Reason.STALE),
        (token(nbf=int(NOW.timestamp()) + 1), Reason.STALE),
        (token(iat=int(NOW.timestamp()) + 3600), Reason.STALE),
        (token({"crit": ["exp"]}), Reason.BAD_HEADER),
        (token() + "A", Reason.BAD_SIGNATURE),
        (token() + "=", Reason.BAD_HEADER),
        (token().rpartition(".")[0] + ".", Reason.BAD_HEADER),
        (token() + ".x", Reason.BAD_HEADER),
        (token()[::-1], Reason.BAD_HEADER),
        ("a" * 100_000, Reason.BAD_HEADER),
        ("..", Reason.BAD_HEADER),
        (b64url(b'{"alg":"none"}') + "." + token().split(".")[1] + ".AA", Reason.BAD_SIGNATURE),
        (b64url(b'{"alg":["HS256"]}') + "." + token().split(".")[1] + ".AA", Reason.BAD_SIGNATURE),
        (b64url(b"[]") + "." + token().split(".")[1] + ".AA", Reason.BAD_HEADER),
        (b64url(b'{"alg":"HS256"}') + "." + b64url(b"\xff") + ".AA", Reason.BAD_HEADER),
    ],
)
def test_token_is_judged_by_the_declaration_and_nothing_it_says_itself(made, reason):
    assert verdict(HS, made, [KEY]) == reason


def test_token_signed_with_the_public_key_as_a_secret_is_refused():
    asymmetric = Jwt(algorithms=("RS256",))
    text = pem(RSA)

    forged = make({"iss": "acme"}, text.encode(), "HS256")

    assert verdict(asymmetric, make({}, pem(RSA, private=True), "RS256"), [text]) is None
    assert verdict(asymmetric, forged, [text]) == Reason.BAD_SIGNATURE
    assert verdict(Jwt(algorithms=("RS256", "HS256")), forged, [text]) == Reason.BAD_SIGNATURE


def test_signature_of_two_numbers_is_spelled_in_one_way_only():
    scheme = Jwt(algorithms=("ES256",))
    head, _, signature = make({"a": 1}, pem(EC, private=True), "ES256").rpartition(".")
    numbers = urlsafe_b64decode(signature + "==")

    longer = f"{head}.{b64url(numbers[:32] + bytes(1) + numbers[32:])}"

    assert verdict(scheme, f"{head}.{b64url(numbers)}", [pem(EC)]) is None
    assert verdict(scheme, longer, [pem(EC)]) == Reason.BAD_SIGNATURE


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
def test_token_of_each_algorithm_is_accepted_from_its_own_key_only(algorithm):
    own, other = {"RS256": (RSA, EC), "ES256": (EC, RSA), "EdDSA": (ED, EC)}[algorithm]
    scheme = Jwt(algorithms=(algorithm,))
    made = make({"a": 1}, pem(own, private=True), algorithm)

    assert verdict(scheme, made, ["", pem(own)]) is None
    assert verdict(scheme, made, [pem(other)]) == Reason.NO_SECRET
    assert verdict(scheme, made[:-8] + "AAAAAAAA", [pem(own)]) in {Reason.BAD_SIGNATURE, Reason.BAD_HEADER}


def test_token_without_an_end_is_judged_by_its_age():
    scheme = Jwt(needs=("iat",), max_age=timedelta(minutes=5))
    made = make({"iat": int(NOW.timestamp())}, KEY.encode(), "HS256")

    ages = [-301, -299, 0, 299, 301]

    verdicts = [verdict(scheme, made, [KEY], NOW + timedelta(seconds=age)) for age in ages]
    assert verdicts == [Reason.STALE, None, None, None, Reason.STALE]


@pytest.mark.parametrize("claims", [{"exp": 31}, {"exp": 31, "iat": 0}, {"exp": 31, "nbf": 0}, {"iat": -31}])
def test_life_of_a_token_is_bounded_whatever_times_it_has(claims):
    scheme = Jwt(longest=timedelta(days=30), body_hash=("sha256", "hex"))

    def judged(days):
        times = {name: int(NOW.timestamp()) + round(at / 31 * days * 86_400) for name, at in claims.items()}
        return verdict(scheme, token(**{"exp": None, **times}), [KEY])

    assert (judged(29), judged(31)) == (None, Reason.STALE)


def test_key_set_gives_the_named_key_and_none_that_has_ended():
    one = {"kty": "OKP", "crv": "Ed25519", "x": b64url(raw(ED)), "kid": "1"}
    document = json.dumps(
        {"keys": [one, {**one, "kid": "2", "expired_at": 1}, {"kty": "oct", "k": "AAAA"}, 7]}
    )

    found = [len(keys_in(document.encode(), kid)) for kid in ("1", "2", "3", None)]

    assert found == [1, 0, 0, 1]
    assert all(
        keys_in(junk, None) == []
        for junk in (b"", b"[]", b'{"keys":{}}', b"\xff", b'{"keys":[{"kty":"RSA"}]}')
    )


def test_keys_of_a_set_that_nothing_can_be_verified_with_hide_no_other():
    one = {"kty": "OKP", "crv": "Ed25519", "x": b64url(raw(ED))}
    others = [{"kty": "oct", "k": "AAAA"}, {"kty": "EC", "crv": "P-256", "use": "enc"}] * 20

    assert len(keys_in(json.dumps({"keys": [*others, one]}).encode(), None)) == 1
    assert len(keys_in(json.dumps({"keys": [one] * 100}).encode(), None)) == 16


def test_unknown_key_id_asks_for_the_set_again():
    sender = load("google_pubsub", options={"audience": "https://h.example/x"})  # one sender, as an example
    claims = {"email": "a@b.example", "iss": "accounts.google.com"}
    made = make(claims, pem(RSA, private=True), "RS256", {"kid": "new"})
    url = "https://www.googleapis.com/oauth2/v3/certs"

    for keys in ({}, {url: b'{"keys":[]}'}):
        with pytest.raises(KeyNeeded) as needed:
            sender.verify(delivery(made), ["a@b.example"], NOW, keys=keys)
        assert needed.value.url == url
    with pytest.raises(Rejected):
        sender.verify(delivery(made), ["someone@b.example"], NOW, keys={})


@pytest.mark.parametrize(
    ("secret", "owner"),
    [
        ("name", ("name", "")),
        (" name \n", ("name", "")),
        ("arn:aws:sns:a:1:n:-----BEGIN X-----", ("arn:aws:sns:a:1:n", "-----BEGIN X-----")),
        ("name -----BEGIN X-----", ("name", "-----BEGIN X-----")),
        ("-----BEGIN X-----", ("", "-----BEGIN X-----")),
        ('{"name": "n", "key": {"kty": "RSA"}}', ("n", '{"kty": "RSA"}')),
    ],
)
def test_owner_is_read_with_the_key_behind_it(secret, owner):
    assert owner_of(secret, "name") == owner


def test_parts_of_a_secret_come_as_text_or_as_json():
    assert parts_of("k:s:t", "key", "secret") == ("k", "s:t")
    assert parts_of('{"secret": "s", "key": "k"}', "key", "secret") == ("k", "s")
    for wrong in ("", "k", "k:", ":s", '{"key": "k"}', "{", "[]"):
        with pytest.raises(ValueError, match="key:secret"):
            parts_of(wrong, "key", "secret")


def test_apples_chain_with_its_key_verifies_what_it_signs():
    case = captured_as("apple_app_store/renewal-status")

    made = case.provider.delivery(b"{}", case.signing, case.now)

    case.provider.verify(made, [case.signing], case.now)
    with pytest.raises(Rejected, match="root"):
        case.provider.verify(made, [case.signing.partition(":")[0]], case.now)
