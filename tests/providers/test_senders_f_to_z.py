"""What single senders from F to Z do besides the contract."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from providers import Delivery, Reason, Rejected
from providers.kit.fingerprint import fingerprint
from providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "a-secret-of-thirty-two-characters"
CHANGED = {"webhook_id": "w", "event_name": "a"}


def sent(name, body, secret=SECRET, now=NOW, options=None, **said):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    provider = load(name, options=options)
    return provider, provider.delivery(body, secret, now, **said)


def reason_of(provider, delivery, *secrets, now=NOW):
    try:
        provider.verify(delivery, secrets or [SECRET], now)
    except Rejected as error:
        return error.reason
    return None


def ids_of(name, body, **headers):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [event.id for event in load(name).events(Delivery("POST", "", headers, raw))]


def fingerprint_of(name, body):
    return fingerprint(json.dumps(body).encode(), load(name).volatile)


@pytest.mark.parametrize(
    ("name", "first", "again"),
    [
        ("hubspot", [{"a": 1, "attemptNumber": 0}], [{"a": 1, "attemptNumber": 3}]),
        (
            "primer",
            {"eventType": "PAYMENT.STATUS", "signedAt": 1},
            {"eventType": "PAYMENT.STATUS", "signedAt": 2},
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
    ("name", "first", "other"),
    [
        ("retell", {"event": "call_ended", "call": {"call_id": "1"}},
         {"event": "call_ended", "call": {"call_id": "2"}}),
        ("retell", {"event": "transcript_updated", "call": {"call_id": "1", "t": 1}},
         {"event": "transcript_updated", "call": {"call_id": "1", "t": 2}}),
        ("x_twitter", {"for_user_id": "1", "tweet_create_events": [{"id_str": "5"}]},
         {"for_user_id": "2", "tweet_create_events": [{"id_str": "5"}]}),
        ("lemon_squeezy", {"meta": CHANGED, "data": {"id": "1", "attributes": {"updated_at": "1"}}},
         {"meta": CHANGED, "data": {"id": "1", "attributes": {"updated_at": "2"}}}),
        ("meta", {"object": "page", "entry": [{"id": "1", "time": 1, "changes": [{"field": "feed", "value": 1}]}]},
         {"object": "page", "entry": [{"id": "1", "time": 2, "changes": [{"field": "feed", "value": 1}]}]}),
        ("onfido", {"payload": {"action": "a", "object": {"id": "1", "status": "x"}}},
         {"payload": {"action": "a", "object": {"id": "1", "status": "y"}}}),
        ("zoom", {"event": "e", "event_ts": 1, "payload": {}}, {"event": "e", "event_ts": 2, "payload": {}}),
    ],
)  # fmt: skip
def test_different_events_have_different_ids(name, first, other):
    assert ids_of(name, first) != ids_of(name, other)


def test_pusher_tells_alike_events_of_a_batch_apart():
    event = {"name": "channel_occupied", "channel": "c"}

    assert len(set(ids_of("pusher", {"time_ms": 1, "events": [event, event]}, **{"x-pusher-key": "k"}))) == 2


def test_meta_event_has_the_same_id_alone_and_in_a_batch():
    def entry(*messages):
        return {
            "id": "W",
            "changes": [{"field": "messages", "value": {"contacts": [1], "messages": list(messages)}}],
        }

    whole = {
        "object": "whatsapp_business_account",
        "entry": [entry({"id": "a"}, {"id": "b"}), entry({"id": "c"})],
    }
    alone = {"object": "whatsapp_business_account", "entry": [entry({"id": "c"})]}

    events = load("meta").events(Delivery("POST", "", {}, json.dumps(whole).encode()))
    assert [event.id for event in events] == ["a", "b", "c"]
    assert json.loads(events[2].raw) == alone


@pytest.mark.parametrize(
    ("seconds", "reason"), [(0, None), (59, None), (-59, None), (61, Reason.STALE), (-61, Reason.STALE)]
)
def test_linear_goes_by_the_time_in_the_body(seconds, reason):
    at = int((NOW.timestamp() - seconds) * 1000)
    provider, delivery = sent("linear", {"type": "Issue", "action": "create", "webhookTimestamp": at})
    lying = replace(
        delivery, headers={**delivery.headers, "linear-timestamp": str(int(NOW.timestamp() * 1000))}
    )

    assert reason_of(provider, lying) == reason


def test_hubspot_v3_decides_wherever_it_was_sent():
    provider, delivery = sent("hubspot", [], url="https://h/x")
    spoilt = replace(delivery, headers={**delivery.headers, "x-hubspot-signature-v3": "A" * 43 + "="})
    beside = {**spoilt.headers, "x-hubspot-signature": "0" * 64, "x-hubspot-signature-version": "v1"}

    assert reason_of(provider, replace(spoilt, headers=beside)) == Reason.BAD_SIGNATURE


@pytest.mark.parametrize("version", ["v0", "v3", "V1", ""])
def test_hubspot_hash_of_another_version_is_bad_header(version):
    headers = {"x-hubspot-signature": "0" * 64, "x-hubspot-signature-version": version}

    assert reason_of(load("hubspot"), Delivery("POST", "", headers, b"[]")) == Reason.BAD_HEADER


def test_hubspot_workflow_by_get_is_an_event_with_its_query():
    [event] = load("hubspot").events(Delivery("GET", "https://h/x?email=a%40b.c", {}, b""))

    assert (event.type, event.data) == ("workflow", {"email": "a@b.c"})


@pytest.mark.parametrize("sign_as", ["standard", "older"])
def test_increase_secret_is_decoded_for_the_newer_signature_only(sign_as):
    secret = "whsec_" + "QUJDRA" * 4
    provider, delivery = sent("increase", {"id": "e"}, secret)
    if sign_as == "older":
        delivery = replace(delivery, headers={key: delivery.headers[key] for key in ("content-type",)})

    assert reason_of(provider, delivery, secret) == (None if sign_as == "standard" else Reason.MISSING_HEADER)


def test_persona_takes_any_group_that_is_right():
    provider, delivery = sent("persona", {"data": {"id": "e"}})
    right = delivery.headers["persona-signature"]
    wrong = f"t=1,v1={'0' * 64}"

    for header in (f"{wrong} {right}", f"{right} {wrong}", f"{wrong} {right} {wrong}"):
        assert reason_of(provider, replace(delivery, headers={"persona-signature": header})) is None
    assert (
        reason_of(provider, replace(delivery, headers={"persona-signature": f"{wrong} {wrong}"}))
        == Reason.BAD_SIGNATURE
    )


def test_persona_group_that_is_right_and_late_is_stale():
    provider, delivery = sent("persona", {"data": {"id": "e"}}, now=NOW - timedelta(hours=1))

    assert reason_of(provider, delivery) == Reason.STALE


def test_pusher_secret_is_used_for_its_own_app_only():
    provider, delivery = sent("pusher", {"time_ms": 1, "events": []}, "k1:s")

    assert reason_of(provider, delivery, "k1:s") is None
    assert reason_of(provider, delivery, "k2:s") == Reason.BAD_SIGNATURE
    assert reason_of(provider, delivery, "s") == Reason.NO_SECRET


def test_paddle_tolerance_is_an_option():
    provider, delivery = sent("paddle_billing", {"event_id": "e"}, options={"tolerance": 60})

    assert provider.tolerance == timedelta(seconds=60)
    assert reason_of(provider, delivery, now=NOW + timedelta(seconds=59)) is None
    assert reason_of(load("paddle_billing"), delivery, now=NOW + timedelta(seconds=6)) == Reason.STALE


@pytest.mark.parametrize("options", [{"tolerance": 0}, {"tolerence": 5}])
def test_paddle_refuses_options_that_it_does_not_know(options):
    with pytest.raises(ValueError, match="paddle_billing: "):
        load("paddle_billing", options=options)


def test_grafana_with_a_timestamp_header_wants_it_signed():
    timed, untimed = load("grafana", options={"timestamp": "X-Time"}), load("grafana")
    body = b'{"status":"firing"}'
    plain = Delivery("POST", "", untimed.sign(body, SECRET, NOW), body)

    assert reason_of(timed, plain) == Reason.MISSING_HEADER
    assert (
        reason_of(timed, replace(plain, headers={**plain.headers, "x-time": "1767225600"}))
        == Reason.BAD_SIGNATURE
    )


@pytest.mark.parametrize(
    ("body", "form", "reason"),
    [
        (b'{"a":1}', False, None),
        (urlencode({"payload": '{"a":1}'}).encode(), True, None),
        (urlencode({"payload": '{"a":2}'}).encode(), True, Reason.BAD_SIGNATURE),
        (urlencode({"payload": '{"a":1}'}).encode(), False, Reason.BAD_SIGNATURE),
        (b"x=1", True, Reason.BAD_SIGNATURE),
    ],
)
def test_gitea_signs_the_json_in_a_form(body, form, reason):
    provider, delivery = sent("gitea_forgejo", b'{"a":1}')
    kind = "application/x-www-form-urlencoded" if form else "application/json"
    headers = {**delivery.headers, "content-type": kind}

    assert reason_of(provider, replace(delivery, headers=headers, body=body)) == reason


def test_mailgun_signature_fits_any_body_and_one_token():
    provider, delivery = sent("mailgun", {"event-data": {"id": "1", "event": "opened"}})
    block = json.loads(delivery.body)["signature"]

    for changed, reason in (
        ({}, None),
        ({"token": "x"}, Reason.BAD_SIGNATURE),
        ({"timestamp": "1"}, Reason.BAD_SIGNATURE),
    ):
        body = json.dumps({"event-data": {"id": "2"}, "signature": {**block, **changed}}).encode()
        assert reason_of(provider, replace(delivery, body=body)) == reason


def test_quickbooks_body_of_neither_shape_is_refused():
    with pytest.raises(Rejected):
        load("quickbooks").events(Delivery("POST", "", {}, b'{"other":1}'))


def test_twitch_message_of_another_kind_is_its_own_type():
    headers = {"twitch-eventsub-message-id": "1", "twitch-eventsub-subscription-type": "channel.follow"}
    kinds = {"notification": "channel.follow", "revocation": "revocation"}

    for kind, expected in kinds.items():
        delivery = Delivery("POST", "", {**headers, "twitch-eventsub-message-type": kind}, b"{}")
        assert load("twitch").events(delivery)[0].type == expected


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
