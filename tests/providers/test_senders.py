"""What all senders do, or many of them, besides the contract; what a single one does is beside its deliveries."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookonce.providers import Delivery
from hookonce.providers.kit.conformance.cases import Case
from hookonce.providers.kit.conformance.junk import put_junk
from hookonce.providers.kit.events.fingerprint import fingerprint
from hookonce.providers.kit.registry import load
from tests.support.senders import NOW, SIGNING, ids_of, sent

PARTNER = {"header": "X-Sig", "id": "$.id", "type": "$.type"}
SENDERS = ["stripe", "github", "gitlab", "slack", "shopify", "standard_webhooks", "hmac"]
OPTIONS = {"hmac": PARTNER}


def fingerprint_of(name, body):
    return fingerprint(json.dumps(body).encode(), load(name).volatile)


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
    provider, delivery = sent(name, body, options=OPTIONS.get(name))

    provider.verify(delivery, [SIGNING], NOW)


@pytest.mark.parametrize(
    ("name", "first", "again"),
    [
        ("hubspot", [{"a": 1, "attemptNumber": 0}], [{"a": 1, "attemptNumber": 3}]),
        (
            "primer",
            {"eventType": "PAYMENT.STATUS", "signedAt": 1},
            {"eventType": "PAYMENT.STATUS", "signedAt": 2},
        ),
        (
            "docusign",
            {"event": "e", "data": {"envelopeId": "x"}},
            {"event": "e", "data": {"envelopeId": "x"}, "retryCount": 1},
        ),
        ("linear", {"action": "a", "webhookTimestamp": 1}, {"action": "a", "webhookTimestamp": 2}),
    ],
)
def test_derived_id_stays_when_the_attempt_is_counted(name, first, again):
    assert ids_of(name, first) == ids_of(name, again)


@pytest.mark.parametrize(
    ("name", "first", "again"),
    [
        ("hubspot", {"eventId": 1, "attemptNumber": 0}, {"eventId": 1, "attemptNumber": 3}),
        ("mux", {"id": "1", "attempts": []}, {"id": "1", "attempts": [{"at": 1}]}),
        ("notion", {"id": "1", "attempt_number": 1}, {"id": "1", "attempt_number": 2}),
        ("nylas", {"id": "1", "webhook_delivery_attempt": 1}, {"id": "1", "webhook_delivery_attempt": 2}),
        ("line", {"deliveryContext": {"isRedelivery": False}}, {"deliveryContext": {"isRedelivery": True}}),
        ("linear", {"a": 1, "webhookTimestamp": 1}, {"a": 1, "webhookTimestamp": 2}),
        (
            "heroku",
            {"webhook_metadata": {"attempt": {"id": 1}}},
            {"webhook_metadata": {"attempt": {"id": 2}}},
        ),
    ],
)
def test_attempts_of_one_event_are_no_conflict(name, first, again):
    assert fingerprint_of(name, first) == fingerprint_of(name, again)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("finch", "MDEyMzQ1Njc4OWFiY2RlZg==", "not base64!"),
        ("squarespace", "b5" * 16, "not hex"),
        ("microsoft_teams_outgoing", "MDEyMzQ1Njc4OWFiY2RlZg==", "?"),
        ("pusher", "key:secret", "secret"),
        ("worldline_connect", "id:key", "key"),
        ("notion", "secret_abc", " "),
    ],
)
def test_secret_of_another_form_is_refused_with_what_a_right_one_looks_like(name, good, bad):
    provider = load(name)

    assert provider.check_secret(good) is None
    with pytest.raises(ValueError, match="the secret is not usable; expected"):
        provider.check_secret(bad)
