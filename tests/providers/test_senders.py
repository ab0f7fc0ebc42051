"""What single senders do besides the contract."""

import json
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers import Delivery, Reason, Rejected
from providers.kit.conformance.cases import Case
from providers.kit.conformance.junk import put_junk
from providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIGNING = "whsec_" + b64encode(b"k" * 32).decode()
PARTNER = {"header": "X-Sig", "id": "$.id", "type": "$.type"}
SENDERS = ["stripe", "github", "gitlab", "slack", "shopify", "standard_webhooks", "hmac"]
OPTIONS = {"hmac": PARTNER}


def sent(name, body, secret=SIGNING, options=None, now=NOW, **said):
    provider = load(name, options=options or OPTIONS.get(name))
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return provider, Delivery("POST", "", provider.sign(body, secret, now, **said), body)


def reason_of(provider, delivery, secrets, now=NOW):
    try:
        provider.verify(delivery, secrets, now)
    except Rejected as error:
        return error.reason
    return None


headers = st.dictionaries(st.sampled_from(
    ["stripe-signature", "x-hub-signature-256", "x-github-event", "x-github-delivery", "x-gitlab-token", "content-type",
     "webhook-id", "webhook-timestamp", "webhook-signature", "svix-signature", "x-slack-signature", "x-sig",
     "x-slack-request-timestamp", "x-shopify-hmac-sha256", "x-shopify-topic", "x-shopify-webhook-id"]),
    st.text(max_size=80) | st.from_regex(r"\A(t=[0-9]{0,12},)?(v1[a]?[=,]|v0=|sha256=)[0-9a-f]{0,64}\Z"))  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "event", "created", "team", "trigger_id", "data"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
bodies = st.binary(max_size=80) | json_values.map(lambda value: json.dumps(value).encode())


@pytest.mark.parametrize("name", SENDERS)
@settings(max_examples=80, deadline=None)
@given(sent_headers=headers, body=bodies)
def test_sender_raises_nothing_but_rejected_whatever_arrives(name, sent_headers, body):
    provider = load(name, options=OPTIONS.get(name))
    delivery = Delivery("POST", "", {}, b"")

    put_junk(Case("junk", provider, SIGNING, delivery, NOW), sent_headers, body)


@pytest.mark.parametrize("name", SENDERS)
@settings(max_examples=30, deadline=None)
@given(body=bodies)
def test_sender_verifies_any_body_that_it_signs(name, body):
    provider, delivery = sent(name, body)

    provider.verify(delivery, [SIGNING], NOW)


def test_github_type_is_the_header_alone():
    provider, delivery = sent("github", {"action": "opened"}, type="issues.opened")

    assert provider.events(delivery)[0].type == "issues"


def test_github_event_with_unreadable_json_is_bad_body():
    provider, delivery = sent("github", b"{")

    with pytest.raises(Rejected, match="bad_body"):
        provider.events(delivery)


@pytest.mark.parametrize("secret", ["sk_live_123", "pk_test_1", "rk_live_1", "", " "])
def test_stripe_refuses_secrets_that_are_api_keys(secret):
    with pytest.raises(ValueError, match="the secret is"):
        load("stripe").check_secret(secret)


@pytest.mark.parametrize(
    ("secrets", "reason"),
    [
        (["token"], None),
        ([SIGNING], None),
        ([SIGNING, "token"], None),
        (["other"], Reason.BAD_SIGNATURE),
        ([SIGNING[:-4] + "AAA=", "token"], Reason.BAD_SIGNATURE),
        ([""], Reason.NO_SECRET),
    ],
)
def test_gitlab_trusts_the_signature_before_the_token(secrets, reason):
    provider, signed = sent("gitlab", {})
    delivery = replace(signed, headers={**signed.headers, "x-gitlab-token": "token"})

    assert reason_of(provider, delivery, secrets) == reason


def test_gitlab_token_opens_where_both_kinds_are_configured():
    provider, delivery = sent("gitlab", {}, "token")

    assert reason_of(provider, delivery, [SIGNING, "token"]) is None


def test_gitlab_id_is_the_signed_one():
    provider, delivery = sent("gitlab", {}, event_id="sent")
    forged = replace(delivery, headers={**delivery.headers, "idempotency-key": "new"})

    assert provider.events(forged)[0].id == "sent"


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b'{"type":"url_verification","challenge":"abc"}', b'{"challenge": "abc"}'),
        (b'{"type":"url_verification","challenge":"\\ud800"}', b'{"challenge": "\\ud800"}'),
        (b'{"type":"url_verification","challenge":1}', None),
        (b'{"type":"url_verification"}', None),
        (b'["url_verification"]', None),
        (b'{"url_verification":', None),
        (b'{"type":"event_callback","challenge":"url_verification"}', None),
        (urlencode({"ssl_check": "1", "token": "t"}).encode(), b""),
        (b"", None),
    ],
)
def test_slack_answers_signed_probes_only(body, answer):
    provider, delivery = sent("slack", body)

    reply = provider.handshake(delivery, [SIGNING])

    assert (reply.body if reply else None) == answer
    for unsigned in (replace(delivery, headers={}), replace(delivery, body=body + b" ")):
        assert provider.handshake(unsigned, [SIGNING]) is None
    assert provider.handshake(delivery, ["other"]) is None
    assert provider.handshake(delivery, []) is None


def test_standard_webhooks_type_is_unknown_where_the_sender_gives_none():
    provider, delivery = sent("standard_webhooks", {"data": 1})

    assert provider.events(delivery)[0].type == "unknown"


@pytest.mark.parametrize("name", ["standard_webhooks", "standard-webhooks"])
def test_standard_webhooks_takes_a_tolerance(name):
    provider, delivery = sent(name, {}, options={"tolerance": 10})

    assert reason_of(provider, delivery, [SIGNING], NOW + timedelta(seconds=11)) == Reason.STALE


def test_standard_webhooks_cannot_sign_with_a_public_key():
    with pytest.raises(ValueError, match="can't sign"):
        sent("standard_webhooks", {}, "whpk_" + b64encode(b"k" * 32).decode())


@pytest.mark.parametrize(
    ("options", "mistakes"),
    [
        ({}, ["header is required", "id is required", "type is required"]),
        (PARTNER | {"heder": "x"}, ["'heder' is not an option, did you mean 'header'?"]),
        (PARTNER | {"hash": "md5"}, ["hash is 'md5', expected one of sha256, sha1, sha512"]),
        (PARTNER | {"encoding": 1, "prefix": 2}, ["encoding is 1", "prefix is 2, expected text"]),
        (PARTNER | {"signed": "{bdy}"}, ["signed leaves out the body", "'{bdy}' is not something that is signed"]),
        (PARTNER | {"timestamp": "X-T"}, ["a signed time needs a timestamp and a template with {timestamp}"]),
        (PARTNER | {"timestamp": 5}, ["timestamp is 5, expected a header's name or a table"]),
        (PARTNER | {"timestamp": {"unit": "m", "tolerance": 0}}, ["unit is 'm'", "tolerance is 0", "header or key"]),
        (PARTNER | {"id": "id"}, ["id is 'id', expected '$.path'"]),
        (PARTNER | {"id": "$.a[*]"}, ["names many places"]),
        (PARTNER | {"type": "fingerprint"}, ["type is 'fingerprint'"]),
        (PARTNER | {"volatile": "$.a"}, ["volatile is '$.a', expected a list"]),
        (PARTNER | {"volatile": ["a"]}, ["'a' is not a path"]),
    ],
)  # fmt: skip
def test_hmac_lists_every_mistake_in_its_options(options, mistakes):
    with pytest.raises(ValueError, match="hmac: ") as wrong:
        load("hmac", options=options)

    assert [mistake for mistake in mistakes if mistake not in str(wrong.value)] == []


def test_hmac_without_options_says_what_it_needs():
    with pytest.raises(ValueError, match="header is required"):
        load("hmac")


@pytest.mark.parametrize(
    ("options", "signed"),
    [
        ({}, True),
        ({"id": "header:X-Id"}, False),
        ({"id": "header:X-Id", "signed": "{header:X-Id}.{body}"}, True),
        ({"id": "query:id"}, False),
        ({"id": "fingerprint"}, True),
    ],
)
def test_hmac_knows_whether_the_id_is_signed(options, signed):
    assert load("hmac", options=PARTNER | options).id_is_signed == signed
