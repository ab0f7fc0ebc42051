"""`hookonce capture` and `hookonce new provider` of senders that sign with a private key."""

import hashlib
import hmac
import json
import tomllib
from base64 import b64encode, urlsafe_b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization

from hookonce.providers import Delivery
from hookonce.providers.kit import Hmac, Timestamp
from hookonce.providers.kit.crypto.public_keys import new_key, public_key, signature_of
from hookonce.providers.kit.http_file import Captured, written
from hookonce.providers.kit.registry import load
from hookonce.providers.kit.schemes.jwt import Jwt
from hookonce.providers.kit.schemes.public_key_signature import Signed
from hookonce.receiver.cli.capture.masking import Masker
from hookonce.receiver.cli.capture.shapes import described
from tests.cli.test_new import run_tests

NOW = datetime(2026, 1, 1, tzinfo=UTC)
URL = "https://in.example/hooks/acme"
BODY = b'{"id": "evt_1", "type": "order.paid", "created_at": "2026-01-01T00:00:00Z"}'
TIME = Timestamp(header="x-time")
UNNAMED = Timestamp(header="x-at", unit="ms")
SIGNED = [
    Signed(header="x-acme-signature", algorithm="ed25519", encoding="hex"),
    Signed(header="x-acme-signature", algorithm="ed25519", timestamp=TIME, signed="{timestamp}.{body}"),
    Signed(header="x-sig", key="v1", algorithm="ed25519", timestamp=Timestamp(key="t"), signed="{timestamp}.{body}"),
    Signed(header="x-sign", algorithm="ed25519", timestamp=TIME, signed="{header:x-message-id}.{timestamp}.{body}"),
    Signed(header="x-signature", prefix="rsa=", algorithm="rsa-sha512"),
    Signed(header="x-signature", algorithm="rsa-pss-sha256", encoding="base64url"),
    Signed(header="x-signature", algorithm="ecdsa-sha256", timestamp=UNNAMED, signed="{timestamp}{body}"),
    Signed(header="x-signature", algorithm="ecdsa-sha384", form="numbers", encoding="hex"),
    Signed(header="x-sign", prefix="v1=", algorithm="ed25519", timestamp=TIME, signed="v1:{timestamp}:{sha256}"),
    Signed(header="x-proof", algorithm="ed25519", timestamp=TIME, signed="{timestamp}.{header:x-message-id}.{body}"),
    Signed(header="x-sign", algorithm="ed25519", timestamp=TIME, signed="{timestamp}.{body}", hashed_by="sha256"),
    Signed(header="x-sign", algorithm="ed25519", timestamp=UNNAMED, signed="{timestamp}:{method}:{url}:{sha256}"),
    Signed(header="x-signature", prefix="ed25519 ", algorithm="ed25519"),
    Signed(header="x-sign", prefix="Ed25519 ", algorithm="ed25519", timestamp=TIME,
           signed="{header:x-ref}.{timestamp}.{body}"),
    Signed(header="x-sign", algorithm="ed25519", encoding="hex", timestamp=TIME,
           signed="{timestamp}{header:x-ref}{body}"),
]  # fmt: skip
TOKENS = [
    Jwt(header="x-signature-jwt", algorithms=("RS256",), body_hash=("sha", "base64"), needs=("exp", "iat")),
    Jwt(algorithms=("ES256",), body_hash=("h", "hex"), hash="sha512", needs=("exp",), issuers=("acme",)),
    Jwt(header="x-jws", algorithms=("PS512",), detached=True),
    Jwt(header="", algorithms=("EdDSA",), needs=("exp", "iat")),
    Jwt(header="", field="$.signed", algorithms=("RS256",), needs=("iat",), max_age=timedelta(minutes=5)),
    Jwt(header="x-signature", algorithms=("HS256",), body_hash=("sha256", "hex"), needs=("exp",)),
]


def public(key, algorithm):
    made = public_key(key, algorithm)
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return made.public_bytes(*form).decode()


def captured(scheme, key, body=BODY):
    """What a sender of this scheme would send, as `hookonce capture` would have written it."""
    headers = {
        "x-message-id": "msg_7",
        "x-ref": "7f3c9a1e",
        "content-type": "application/json",
        "host": "in.example",
    }
    if isinstance(scheme, Jwt) and not scheme.header:
        sent = scheme.deliver(body, key, NOW, url="/hooks/acme", headers=headers)
    else:
        sent = Delivery(
            "POST", "/hooks/acme", headers | scheme.sign(body, key, NOW, url=URL, headers=headers), body
        )
    request = Captured("POST", sent.url, list(sent.headers.items()), sent.body, NOW)
    return Masker().masked(request)[0]


def passes(place):
    said = run_tests(place, "tests/providers/acme")
    return "failed" not in said and "passed" in said, said


def keys_of(scheme):
    algorithm = scheme.key_algorithm
    key = new_key(algorithm) if algorithm else "a secret of the tests, shared by both"
    return key, public(key, algorithm) if algorithm else key


def accepted_by_table(text, request, secret):
    """The ids that a source of the proposed table finds in a captured delivery."""
    source = tomllib.loads(text)["sources"]["acme"]
    provider = load(source["provider"], (), source[source["provider"]])
    url, _ = request.addressed("")
    delivery = Delivery(request.method, url, request.lowered(), request.body)
    provider.verify(delivery, [secret], NOW)
    return [event.id for event in provider.events(delivery)]


@pytest.mark.parametrize("scheme", [*SIGNED, *TOKENS], ids=lambda each: f"{each.header} {each.key_algorithm}")
def test_new_provider_finds_out_how_a_key_pair_signed(place, hookonce, scheme):
    key, secret = keys_of(scheme)
    request = captured(scheme, key)
    (place / "order.http").write_bytes(written(request))

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)
    table = hookonce("new", "provider", "other", "--from", "order.http", "--secret", secret, "--table")

    assert made.code == 0, made.err
    assert "the key verifies it" in made.err
    proposed = table.out.decode().replace("sources.other", "sources.acme")
    signed = str(getattr(scheme, "signed", ""))
    event_id = "msg_7" if "x-message-id" in signed else "7f3c9a1e" if "x-ref" in signed else "evt_1"
    assert accepted_by_table(proposed, request, secret) == [event_id]


@pytest.mark.parametrize(
    "scheme",
    [SIGNED[2], SIGNED[3], SIGNED[6], *TOKENS],
    ids=lambda each: f"{each.header} {each.key_algorithm}",
)
def test_new_provider_of_a_key_pair_passes_its_own_tests_with_a_key_of_the_kit(place, hookonce, scheme):
    key, secret = keys_of(scheme)
    (place / "order.http").write_bytes(written(captured(scheme, key)))
    hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)

    is_green, said = passes(place)

    assert is_green, said
    assert ("28 passed" if scheme.key_algorithm else "14 passed") in said


def test_new_provider_finds_an_event_in_a_part_of_a_body_and_a_quoted_signature(place, hookonce):
    event = {"uuid": "ev-9", "kind": "parcel.delivered", "at": 1768480000}
    body = json.dumps({"message": event, "workspaceId": "t-1", "parcel": {"id": "p-1"}}, indent=1).encode()
    key, secret = keys_of(SIGNED[1])
    request = captured(SIGNED[1], key, body)
    quoted = {"x-acme-signature": f'keyid="k1", signature="{request.lowered()["x-acme-signature"]}"'}
    (place / "order.http").write_bytes(
        written(replace(request, headers=[*(request.lowered() | quoted).items()]))
    )

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)
    is_green, said = passes(place)

    assert "its event is ev-9 of type parcel.delivered" in made.err
    assert 'account = "$.workspaceId"' in made.err
    assert is_green, said


def test_new_provider_takes_a_set_of_keys_for_a_secret(place, hookonce):
    key = new_key("ed25519")
    raw = public_key(key, "ed25519").public_bytes_raw()
    own = {"kty": "OKP", "crv": "Ed25519", "x": urlsafe_b64encode(raw).decode().rstrip("=")}
    (place / "order.http").write_bytes(written(captured(SIGNED[0], key)))

    for secret in (raw.hex(), b64encode(raw).decode(), json.dumps(own), json.dumps({"keys": [own]})):
        made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret, "--table")

        assert (made.code, 'algorithm = "ed25519"' in made.out.decode()) == (0, True), made.err


@pytest.mark.parametrize(
    ("scheme", "kind"),
    [
        (SIGNED[0], "Signed"),
        (Hmac(header="x-acme-signature", hash="sha512"), "Signed"),
        (Hmac(header="x-acme-hmac", hash="sha512"), "Hmac"),
        (Hmac(header="x-acme-signature", prefix="sha512=", hash="sha512"), "Hmac"),
        (Hmac(header="x-acme-signature"), "Hmac"),
        (SIGNED[4], "Signed"),
    ],
)
def test_new_provider_without_a_key_says_that_64_bytes_are_a_guess(place, hookonce, scheme, kind):
    key = new_key(scheme.algorithm) if isinstance(scheme, Signed) else "a secret"
    (place / "order.http").write_bytes(written(captured(scheme, key)))

    made = hookonce("new", "provider", "acme", "--from", "order.http")

    assert (made.code, "how it is signed is a guess" in made.err) == (0, True)
    assert f"scheme = kit.{kind}(" in (place / "webhook_providers/acme.py").read_text()


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        (SIGNED[0], "header x-acme-signature holds 64 bytes in hex: an Ed25519 signature or an ECDSA"),
        (SIGNED[2], "header x-sig holds 64 bytes in base64: an Ed25519 signature"),
        (SIGNED[4], "header x-signature holds 256 bytes in base64: an RSA signature"),
        (SIGNED[6], "header x-signature holds 7"),
        (Hmac(header="x-signature"), "header x-signature holds 32 bytes in hex: an HMAC-SHA256"),
        (TOKENS[0], "header x-signature-jwt is a signed token (JWT), signed by RS256"),
        (TOKENS[2], "header x-jws is a detached token (JWS) of the body, signed by PS512"),
        (TOKENS[4], "$.signed is a signed token (JWT), signed by RS256"),
        (TOKENS[3], "the body is a signed token (JWT), signed by EdDSA"),
    ],
)  # fmt: skip
def test_capture_says_by_what_a_delivery_could_be_signed(scheme, said):
    key = "a secret" if isinstance(scheme, Hmac) else keys_of(scheme)[0]

    assert any(line.startswith(said) for line in described(captured(scheme, key)))


@pytest.mark.parametrize(("algorithm", "key"), [("ES256", new_key("ecdsa-sha256")), ("HS256", "ab" * 32)])
def test_masked_token_is_no_shared_secret_for_who_has_its_key(place, hookonce, algorithm, key):
    token = Jwt(algorithms=(algorithm,), needs=("exp",)).sign(BODY, key, NOW)["authorization"]
    request = Captured("POST", "/hooks/acme", [("authorization", f"Bearer {token}")], BODY, NOW)
    masked, names = Masker().masked(request)
    (place / "order.http").write_bytes(written(masked))

    secret = key if algorithm == "HS256" else public(key, "ecdsa-sha256")
    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret)

    assert described(request, names)[0].endswith("; to have it verified, capture with --keep authorization")
    assert (made.code, "capture the next delivery with --keep authorization" in made.err) == (1, True)
    assert not (place / "webhook_providers").exists()


@pytest.mark.parametrize("algorithm", ["ed25519", "hmac"])
def test_new_provider_reads_a_quoted_signature_and_the_headers_that_it_lists(place, hookonce, algorithm):
    digest = f"SHA-256={b64encode(hashlib.sha256(BODY).digest()).decode()}"
    sent = {"host": "in.example", "date": "Thu, 01 Jan 2026 00:00:00 GMT", "digest": digest}
    message = "\n".join(["(request-target): post /hooks/acme", *(f"{name}: {sent[name]}" for name in sent)])
    if algorithm == "hmac":
        secret = "a secret of the tests"
        raw = hmac.digest(secret.encode(), message.encode(), "sha256")
    else:
        key = new_key("ed25519")
        secret, raw = public(key, "ed25519"), signature_of(key, "ed25519", message.encode())
    pairs = f'keyId="k1",headers="(request-target) {" ".join(sent)}",signature="{b64encode(raw).decode()}"'
    came = Captured(
        "POST", "/hooks/acme", [*sent.items(), ("authorization", f"Signature {pairs}")], BODY, NOW
    )
    request = Masker().masked(came)[0]
    (place / "order.http").write_bytes(written(request))

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", secret, "--table")

    assert accepted_by_table(made.out.decode(), request, secret) == ["evt_1"]
    assert (
        described(request)[0]
        == "header digest holds the body's own SHA-256, which anybody can make: no signature"
    )
    assert described(request)[1].startswith(f"header authorization holds {len(raw)} bytes in base64")


def test_new_provider_wants_the_key_and_not_the_name_of_its_file(place, hookonce):
    (place / "order.http").write_bytes(written(captured(SIGNED[0], new_key("ed25519"))))
    (place / "acme.pub").write_text("a key")

    made = hookonce("new", "provider", "acme", "--from", "order.http", "--secret", "acme.pub")

    assert (made.code, '--secret "$(cat acme.pub)"' in made.err) == (2, True)
    assert not (place / "webhook_providers").exists()


def test_capture_keeps_a_token_of_this_body_and_masks_one_that_is_a_credential():
    key = new_key("ecdsa-sha256")
    bound = TOKENS[1].sign(BODY, key, NOW)["authorization"]
    loose = Jwt(algorithms=("ES256",), needs=("exp",)).sign(BODY, key, NOW)["authorization"]

    def kept(value):
        return dict(Masker().masked(Captured("POST", "/", [("authorization", value)], BODY))[0].headers)[
            "authorization"
        ]

    assert kept(bound) == bound
    assert kept(f"Bearer {loose}") == "Bearer [signed token]"
    assert hashlib.sha512(BODY).hexdigest() not in kept(f"Bearer {loose}")
