"""SDKs that verify and do not sign: what we sign they take, and whatever is changed they refuse as we do."""

import json
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hookonce.providers.kit.registry import load
from tests.support.vendor_sdks import IDS, NOW, accepted, differential, oracle

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=100)
SECRETS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=40)
LONG = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=64, max_size=80)


@st.composite
def bodies(draw):
    """JSON, as some SDKs read it after verifying; spaces and escapes as they come."""
    said = {"id": draw(IDS), "events": [], "text": draw(TEXTS)}
    return json.dumps(said, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 0, 2])))


@st.composite
def changes(draw, body, signature, secret):
    """The three as they are, or with one of them changed."""
    what = draw(st.sampled_from(["nothing", "body", "signature", "secret"]))
    if what == "body":
        at = draw(st.integers(0, len(body)))
        body = body[:at] + " " + body[at:]
    if what == "signature":
        at = draw(st.integers(0, len(signature) - 1))
        signature = signature[:at] + draw(st.sampled_from("0fF=, ")) + signature[at + 1 :]
    if what == "secret":
        secret = draw(SECRETS)
    return body, signature, secret


def razorpay_accepts(body, signature, secret):
    module, errors = oracle("razorpay.utility"), oracle("razorpay.errors")
    try:
        return module.Utility(None).verify_webhook_signature(body, signature, secret)
    except errors.SignatureVerificationError:
        return False


def gocardless_accepts(body, signature, secret):
    module, errors = oracle("gocardless_pro.webhooks"), oracle("gocardless_pro.errors")
    try:
        module.parse(body, secret, signature)
    except errors.InvalidSignatureError:
        return False
    return True


def easypost_accepts(body, signature, secret):
    module, errors = oracle("easypost.util"), oracle("easypost.errors")
    headers = {"X-Hmac-Signature": signature}
    try:
        module.validate_webhook(body.encode(), headers, secret)
    except errors.SignatureVerificationError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "header", "sdk_accepts"),
    [
        ("razorpay", "x-razorpay-signature", razorpay_accepts),
        ("gocardless", "webhook-signature", gocardless_accepts),
        ("easypost", "x-hmac-signature", easypost_accepts),
    ],
)
@differential
@given(data=st.data(), body=bodies(), secret=SECRETS)
def test_sdk_and_we_take_and_refuse_the_same_deliveries(name, header, sdk_accepts, data, body, secret):
    signature = load(name).sign(body.encode(), secret, NOW)[header]
    assert sdk_accepts(body, signature, secret)

    body, signature, secret = data.draw(changes(body, signature, secret))

    ours = accepted(name, {header: signature}, body.encode(), secret)
    assert ours == sdk_accepts(body, signature, secret)


@differential
@given(data=st.data(), secret=SECRETS, request=IDS, named=st.from_regex(r"\A[a-z0-9]{1,20}\Z"))
def test_mercado_pago_and_we_take_and_refuse_the_same_deliveries(data, secret, request, named):
    sdk = oracle("mercadopago.webhook")
    said = {"event_id": request, "url": f"https://in.example/hooks/m?data.id={named}&type=payment"}
    signature = load("mercado_pago").sign(b"{}", secret, NOW, **said)["x-signature"]
    named, signature, secret = data.draw(changes(named, signature, secret))
    assume(" " not in named)  # how a space in a URL is read is the framework's business, not the SDK's

    headers = {"x-signature": signature, "x-request-id": request}
    url = f"https://in.example/hooks/m?data.id={named}&type=payment"
    try:
        sdk.WebhookSignatureValidator.validate(signature, request, named, secret)
        theirs = True
    except sdk.InvalidWebhookSignatureError:
        theirs = False

    assert accepted("mercado_pago", headers, b"{}", secret, url=url) == theirs


def messagebird_accepts(token, url, body, secret):
    module, errors = oracle("messagebird.request_validator"), oracle("messagebird.error")
    try:
        module.RequestValidator(secret).validate_signature(token, url, body)
    except errors.ValidationError:
        return False
    return True


@differential
@given(data=st.data(), body=bodies(), secret=LONG, wrong=LONG, query=IDS)
def test_messagebird_and_we_take_and_refuse_the_same_deliveries(data, body, secret, wrong, query):
    now, url = datetime.now(UTC), f"https://in.example/hooks/m?a={query}"
    token = load("messagebird").sign(body.encode(), secret, now, url=url)["messagebird-signature-jwt"]
    assert messagebird_accepts(token, url, body.encode(), secret)

    body, token, _ = data.draw(changes(body, token, secret))
    url = data.draw(st.sampled_from([url, url + "&b=1"]))

    for candidate in (secret, wrong):
        headers = {"MessageBird-Signature-JWT": token}
        ours = accepted("messagebird", headers, body.encode(), candidate, now, url)
        assert ours == messagebird_accepts(token, url, body.encode(), candidate)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512", "none"])
@pytest.mark.parametrize("away", [-90, 0, 90])
@pytest.mark.parametrize("issuer", ["MessageBird", "SomebodyElse"])
def test_messagebird_and_we_judge_claims_alike(algorithm, away, issuer):
    jwt, now, secret, url = oracle("jwt"), datetime.now(UTC), "k" * 64, "https://in.example/hooks/m"
    start = int(now.timestamp()) + away
    claims = {"iss": issuer, "jti": "j", "nbf": start, "exp": start + 60}
    hashes = {"url_hash": sha256(url.encode()).hexdigest(), "payload_hash": sha256(b"{}").hexdigest()}
    key = None if algorithm == "none" else secret
    token = jwt.encode({**claims, **hashes}, key, algorithm)

    ours = accepted("messagebird", {"MessageBird-Signature-JWT": token}, b"{}", secret, now, url)
    assert ours == messagebird_accepts(token, url, b"{}", secret)
