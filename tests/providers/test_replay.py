"""What is taken again, by whom, and from when: captured deliveries, other secrets, clocks that differ."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from hookonce.providers import KeyNeeded, Reason
from hookonce.providers.kit.registry import load
from tests.support.captured import captured_as
from tests.support.senders import NOW, SIGNING, reason_of, sent

PAYLOAD = {"id": "e", "event_id": "e", "type": "t", "data": {"id": "d"}}


def test_hubspot_takes_a_delivery_of_v3_as_no_other():
    provider, delivery = sent("hubspot", [PAYLOAD], url="https://h/x")
    kept = {key: value for key, value in delivery.headers.items() if not key.endswith(("v3", "-timestamp"))}
    v1 = load("hubspot", options={"versions": ["v1"]}).sign(delivery.body, SIGNING, NOW)
    stripped = replace(delivery, headers={**kept, **v1})

    assert reason_of(provider, stripped) == Reason.BAD_SIGNATURE
    assert reason_of(load("hubspot", options={"versions": ["v1", "v3"]}), stripped) is None


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_hubspot_takes_the_version_that_its_source_lists(version):
    provider, delivery = sent("hubspot", [PAYLOAD], options={"versions": [version]}, url="https://h/x")
    other = load("hubspot", options={"versions": ["v3", "v1" if version == "v2" else "v2"]})

    assert reason_of(provider, delivery, now=NOW + timedelta(days=365)) is None
    assert reason_of(other, delivery) == Reason.BAD_SIGNATURE
    assert provider.tolerance is None


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("hubspot", "versions", []),
        ("hubspot", "versions", ["v4"]),
        ("hubspot", "versions", "v3"),
        ("apple_app_store", "environments", ["production"]),
        ("mollie", "classic", "yes"),
        ("grafana", "reminders", 1),
    ],
)
def test_option_that_is_none_of_what_can_be_is_refused(name, option, value):
    with pytest.raises(ValueError, match=option):
        load(name, options={option: value})


@pytest.mark.parametrize(
    ("environments", "taken"),
    [(None, False), (["Production"], False), (["Sandbox"], True), (["Production", "Sandbox"], True)],
)
def test_app_store_takes_the_sandbox_only_if_told_to(environments, taken):
    case = captured_as("apple_app_store/renewal-status")
    provider = load("apple_app_store", options={"environments": environments} if environments else None)

    assert (reason_of(provider, case.delivery, case.secret, now=case.now) is None) is taken


@pytest.mark.parametrize(
    ("name", "options", "tolerance"),
    [("paddle_billing", {}, 5), ("contentful", {}, 30), ("calendly", {}, 180), ("stripe", {}, 300)],
)
def test_clock_that_is_behind_the_senders_is_no_reason_to_refuse(name, options, tolerance):
    secret = "k" * 64 if name == "contentful" else SIGNING
    provider, delivery = sent(name, PAYLOAD, secret, options=options)

    behind, ahead = timedelta(seconds=-299), timedelta(seconds=tolerance + 1)

    assert reason_of(provider, delivery, secret, now=NOW + behind) is None
    assert reason_of(provider, delivery, secret, now=NOW + behind - timedelta(seconds=2)) == Reason.STALE
    assert reason_of(provider, delivery, secret, now=NOW + ahead) == Reason.STALE


@pytest.mark.parametrize("name", ["webflow", "front", "hygraph"])
def test_sender_of_milliseconds_signs_milliseconds(name):
    _, delivery = sent(name, PAYLOAD)

    assert str(int(NOW.timestamp()) * 1000) in " ".join(delivery.headers.values())


def test_box_sends_what_its_sdk_asks_for():
    _, delivery = sent("box", PAYLOAD)

    assert delivery.headers["box-signature-version"] == "1"
    assert delivery.headers["box-signature-algorithm"] == "HmacSHA256"


def test_plaid_asks_with_the_next_credentials_where_the_first_get_no_key():
    case = captured_as("plaid/fetched-jwk")
    [(url, document)] = case.keys.items()
    secrets = ["client0:secret0secret0", case.secret]
    verify = case.provider.verify

    with pytest.raises(KeyNeeded) as first:
        verify(case.delivery, secrets, case.now)
    with pytest.raises(KeyNeeded) as second:
        verify(case.delivery, secrets, case.now, keys={url: b'{"error_code": "INVALID_API_KEYS"}'})
    verify(case.delivery, secrets, case.now, keys={url: b"{}", second.value.url: document})

    asked = [json.loads(needed.value.post)["client_id"] for needed in (first, second)]
    assert asked == ["client0", "client1"]


@pytest.mark.parametrize("secrets", [["whsec_"], ["whsec_", SIGNING], ["whsec_!", "polar_whs_1"]])
def test_polar_takes_no_bare_prefix_for_a_secret(secrets):
    provider, delivery = sent("polar", PAYLOAD, secrets[-1] if len(secrets) > 1 else SIGNING)

    expected = None if len(secrets) > 1 else Reason.NO_SECRET
    assert reason_of(provider, delivery, *secrets) == expected


@pytest.mark.parametrize(
    ("name", "unsigned"),
    [
        ("pagerduty", "x-webhook-id"),
        ("chargify", "x-chargify-webhook-id"),
        ("recurly", "recurly-notification-id"),
        ("zendesk", "x-zendesk-webhook-invocation-id"),
    ],
)
def test_id_in_the_signed_body_comes_before_one_in_a_header(name, unsigned):
    body = {
        "id": "signed",
        "type": "zen:event-type:user.created",
        "event": {"id": "signed", "event_type": "t"},
    }
    raw = b"id=signed&event=t" if name == "chargify" else body
    provider, delivery = sent(name, raw)

    [event] = provider.events(replace(delivery, headers={**delivery.headers, unsigned: "anybody's"}))

    assert event.id == "signed"


def test_zendesk_body_that_a_trigger_made_is_not_known_by_its_ticket():
    provider, delivery = sent("zendesk", {"id": 35436, "type": "ticket"}, event_id="inv-1")

    assert [event.id for event in provider.events(delivery)] == ["inv-1"]


def test_twitch_reads_what_a_message_is_in_its_signed_body():
    provider, delivery = sent("twitch", {"subscription": {"type": "channel.follow"}, "event": {}})
    headers = {**delivery.headers, "twitch-eventsub-message-type": "revocation"}
    headers["twitch-eventsub-subscription-type"] = "channel.ban"

    assert [event.type for event in provider.events(replace(delivery, headers=headers))] == ["channel.follow"]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"notificationType": "Bounce"}, "Bounce"),
        ({"Records": [{"eventName": "ObjectCreated:Put"}]}, "ObjectCreated:Put"),
        ({"detail-type": "EC2 Instance State-change Notification"}, "EC2 Instance State-change Notification"),
        ("Hello", "Notification"),
        ([1], "Notification"),
    ],
)
def test_sns_message_of_a_service_has_the_type_that_it_says(message, expected):
    case = captured_as("amazon_sns/own-key")
    text = message if isinstance(message, str) else json.dumps(message)
    body = {**json.loads(case.delivery.body), "Message": text}

    [event] = case.provider.events(replace(case.delivery, body=json.dumps(body).encode(), readings={}))

    assert event.type == expected


def test_slack_gets_nothing_to_show_for_what_a_person_did():
    answer = load("slack").accepted

    assert answer(captured_as("slack/button").delivery).body == b""
    assert answer(captured_as("slack/docs").delivery).body == b""
    assert answer(captured_as("slack/event").delivery) is None
