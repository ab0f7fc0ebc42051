"""The senders' own SDKs as oracles: what they sign we accept, what we sign they accept, and both refuse alike."""

from base64 import b64encode
from datetime import UTC, datetime
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookonce.providers.kit.registry import load
from tests.support.vendor_sdks import BODIES, IDS, NOW, SECRETS, T, accepted, differential, oracle


@pytest.fixture(scope="module")
def stripe():
    return oracle("stripe")


@pytest.fixture(scope="module")
def sansio():
    return oracle("gidgethub.sansio")


@pytest.fixture(scope="module")
def slack():
    return oracle("slack_sdk.signature")


@pytest.fixture(scope="module")
def standard():
    return oracle("standardwebhooks.webhooks")


def stripe_accepts(stripe, header, body, secret):
    try:
        return stripe.WebhookSignature.verify_header(body, header, secret, tolerance=None)
    except stripe.SignatureVerificationError:
        return False


@differential
@given(body=BODIES, secret=SECRETS)
def test_stripe_and_we_accept_each_others_signatures(stripe, body, secret):
    theirs = stripe.WebhookSignature.generate_signature_header(body, secret, T)
    ours = load("stripe").sign(body.encode(), secret, NOW)["stripe-signature"]

    assert ours == theirs
    assert accepted("stripe", {"Stripe-Signature": theirs}, body.encode(), secret)
    assert stripe_accepts(stripe, ours, body, secret)


@differential
@given(data=st.data(), body=BODIES, secret=SECRETS)
def test_stripe_and_we_refuse_the_same_changes(stripe, data, body, secret):
    header = stripe.WebhookSignature.generate_signature_header(body, secret, T)
    at = data.draw(st.integers(0, len(header) - 1))
    changed = header[:at] + data.draw(st.sampled_from("0f=,tv19")) + header[at + 1 :]

    assert accepted("stripe", {"Stripe-Signature": changed}, body.encode(), secret) == stripe_accepts(
        stripe, changed, body, secret
    )


def github_accepts(sansio, headers, body, secret):
    try:
        sansio.validate_event(body, signature=headers["x-hub-signature-256"], secret=secret)
    except sansio.ValidationFailure:
        return False
    return True


@differential
@given(body=BODIES, secret=SECRETS, wrong=SECRETS)
def test_gidgethub_accepts_and_refuses_what_we_sign(sansio, body, secret, wrong):
    headers = load("github").sign(body.encode(), secret, NOW)

    for candidate in (secret, wrong):
        ours = accepted("github", headers, body.encode(), candidate)
        assert ours == github_accepts(sansio, headers, body.encode(), candidate) == (candidate == secret)


@differential
@given(body=BODIES, secret=SECRETS, wrong=SECRETS)
def test_slack_and_we_accept_each_others_signatures(slack, body, secret, wrong):
    class Clock(slack.Clock):
        def now(self):
            return float(T)

    verifier = slack.SignatureVerifier(secret, Clock())
    theirs = verifier.generate_signature(timestamp=str(T), body=body)
    ours = load("slack").sign(body.encode(), secret, NOW)

    assert ours["x-slack-signature"] == theirs
    assert verifier.is_valid_request(body, ours)
    assert accepted("slack", ours, body.encode(), wrong) == (wrong == secret)


@pytest.mark.parametrize("away", [-301, -300, 0, 300, 301])
def test_slack_and_we_draw_the_line_at_the_same_second(slack, away):
    class Clock(slack.Clock):
        def now(self):
            return float(T)

    body = urlencode({"command": "/deploy", "trigger_id": "1.2"})
    signed = load("slack").sign(body.encode(), "s", datetime.fromtimestamp(T + away, UTC))

    theirs = slack.SignatureVerifier("s", Clock()).is_valid_request(body, signed)
    assert accepted("slack", signed, body.encode(), "s") == theirs


def standard_accepts(standard, secret, headers, body):
    try:
        standard.Webhook(secret).verify(body, headers)
    except (standard.WebhookVerificationError, ValueError):
        return False
    return True


@differential
@given(event_id=IDS, key=st.binary(min_size=24, max_size=64), wrong=st.binary(min_size=24, max_size=64))
def test_standard_webhooks_and_we_accept_each_others_signatures(standard, event_id, key, wrong):
    now = datetime.now(UTC)
    body = '{"type":"user.created","data":"Zoë"}'
    secret, other = (f"whsec_{b64encode(each).decode()}" for each in (key, wrong))
    ours = load("standard_webhooks").sign(body.encode(), secret, now, event_id=event_id)
    theirs = standard.Webhook(secret).sign(event_id, now, body)

    assert ours["webhook-signature"] == theirs
    for candidate in (secret, other):
        accepts = standard_accepts(standard, candidate, ours, body)
        assert accepted("standard_webhooks", ours, body.encode(), candidate, now) == accepts
