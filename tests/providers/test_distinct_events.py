"""Pairs of distinct events of one sender, which have two ids."""

import json
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from hookonce.providers import Delivery, Reason
from hookonce.providers.kit import FORM
from hookonce.providers.kit.conformance.cases import refusal
from hookonce.providers.kit.events.fingerprint import fingerprint
from hookonce.providers.kit.registry import load
from tests.support.captured import captured_as
from tests.support.senders import NOW, reason_of, sent

CALL = {"AccountSid": "AC1", "CallSid": "CA1", "ApiVersion": "2010-04-01"}
ACTIVITY = {
    "channelId": "msteams",
    "conversation": {"id": "19:a@thread.v2"},
    "id": "1485983408511",
    "serviceUrl": "https://smba.trafficmanager.net/teams/",
}
TRANSFER = {"type": "balancePlatform.transfer.updated", "timestamp": "2026-01-01T00:00:00+01:00"}
DEPLOY = {"id": "d1", "site_id": "s1", "state": "ready"}
CHANGE = {"triggerUuid": "u1", "type": "update_column_value", "boardId": 1}
CHANGED = {"webhook_id": "w", "event_name": "a"}
FINISHED = {"event": "build.finished", "build": {"id": "b1", "state": "passed"}}
KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"


def events_of(name, body, **headers):
    if name == "twilio" and isinstance(body, dict):
        body, headers = urlencode(body).encode(), {"content-type": FORM, **headers}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return load(name).events(Delivery("POST", "https://h/x", named, raw))


def event_of(name, body, **headers):
    [event] = events_of(name, body, **headers)
    return event


def activity(kind, **said):
    return ACTIVITY | {"type": kind} | said


def transfer(**data):
    return TRANSFER | {"data": {"id": "TR1"} | data}


def conference(event, number=1):
    return CALL | {"ConferenceSid": "CF1", "StatusCallbackEvent": event, "SequenceNumber": number}


def transcription(number):
    return CALL | {
        "TranscriptionSid": "GT1",
        "TranscriptionEvent": "transcription-content",
        "SequenceId": number,
    }


def order(action, version):
    return {"type": "topic_merchant_order_wh", "id": "23", "action": action, "version": version}


def graph(**said):
    return {"value": [{"subscriptionId": "s", "clientState": "c", **said}]}


def instagram(message):
    held = {"sender": {"id": "1"}, "timestamp": 1, "message": message}
    return {"object": "instagram", "entry": [{"id": "I", "time": 1, "messaging": [held]}]}


def label(updated):
    return {"event": "transaction_updated", "data": {"object_id": "o", "object_updated": updated}}


def room(title):
    return {"id": "w", "resource": "rooms", "event": "updated", "data": {"id": "r", "title": title}}


def moderated(status):
    said = {"notification_type": "moderation", "asset_id": "a", "version": 1}
    return {**said, "moderation_status": status}


def built(finished):
    return urlencode({"payload": json.dumps({"id": 1, "state": "passed", "finished_at": finished})}).encode()


def clicked(link):
    return {"event": "click", "message-id": "m", "email": "a@example.com", "ts_event": 1, "link": link}


def reminder(due):
    return {"event": "charge.dispute.remind", "data": {"id": 5, "dueAt": due}}


def click(url):
    at = "2026-01-01T00:00:00Z"
    return {
        "RecordType": "Click",
        "MessageID": "m",
        "Recipient": "a@b.c",
        "ReceivedAt": at,
        "OriginalLink": url,
    }


def tracked(event, **said):
    listed = [{"event": event, "_id": "m", "ts": 1767225600, **said}]
    return urlencode({"mandrill_events": json.dumps(listed)}).encode()


def authorised(**said):
    item = {"eventCode": "AUTHORISATION", "pspReference": "1", **said}
    return {"notificationItems": [{"NotificationRequestItem": item}]}


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("bot_framework", activity("message", text="a"), activity("messageUpdate", text="b")),
        ("bot_framework", activity("messageUpdate", text="a"), activity("messageUpdate", text="b")),
        ("bot_framework", activity("messageUpdate", text="a"), activity("messageDelete")),
        ("bot_framework", activity("message"), activity("messageDelete")),
        ("microsoft_teams_outgoing", activity("message"), activity("message") | {"conversation": {"id": "19:b"}}),
        ("microsoft_teams_outgoing", activity("message"), activity("messageUpdate")),
        ("twilio", conference("participant-join"), conference("participant-leave")),
        ("twilio", conference("participant-mute", 2), conference("participant-mute", 3)),
        ("twilio", conference("participant-join"), CALL),
        ("twilio", CALL | {"StreamSid": "MZ1", "StreamEvent": "stream-started"},
         CALL | {"StreamSid": "MZ1", "StreamEvent": "stream-stopped"}),
        ("twilio", transcription(1), transcription(2)),
        ("twilio", CALL | {"TranscriptionSid": "TR1", "TranscriptionStatus": "completed"},
         CALL | {"TranscriptionSid": "TR2", "TranscriptionStatus": "completed"}),
        ("twilio", CALL | {"CallStatus": "completed"},
         CALL | {"CallStatus": "completed", "RecordingSid": "RE1", "RecordingUrl": "https://a"}),
        ("twilio", CALL | {"CallStatus": "completed", "Digits": "1"},
         CALL | {"CallStatus": "completed", "Digits": "hangup"}),
        ("twilio", CALL | {"AnsweredBy": "human", "MachineDetectionDuration": "3"}, CALL),
        ("twilio", CALL | {"CallStatus": "in-progress", "DialCallStatus": "busy"},
         CALL | {"CallStatus": "in-progress", "DialCallStatus": "no-answer"}),
        ("twilio", {"RoomSid": "RM1", "StatusCallbackEvent": "participant-connected", "ParticipantSid": "PA1"},
         {"RoomSid": "RM1", "StatusCallbackEvent": "participant-connected", "ParticipantSid": "PA2"}),
        ("adyen", transfer(sequenceNumber=2, status="authorised"), transfer(sequenceNumber=3, status="booked")),
        ("adyen", transfer(sequenceNumber=2), transfer(sequenceNumber=3)),
        ("adyen", transfer(status="authorised"), transfer(status="booked")),
        ("adyen", {"type": "balancePlatform.transfer.created", "data": {"id": "T", "category": "internal",
                                                                       "direction": "outgoing"}},
         {"type": "balancePlatform.transfer.created", "data": {"id": "T", "category": "internal",
                                                              "direction": "incoming"}}),
        ("adyen", {"type": "balancePlatform.outgoingTransfer.created", "data": {"id": "T"}},
         {"type": "balancePlatform.incomingTransfer.created", "data": {"id": "T"}}),
        ("mailersend", {"type": "activity.clicked", "data": {"id": "a"}},
         {"type": "activity.clicked_unique", "data": {"id": "a"}}),
        ("mailersend", {"type": "activity.opened", "data": {"id": "a"}},
         {"type": "activity.opened_unique", "data": {"id": "a"}}),
        ("monday", {"event": CHANGE | {"subscriptionId": 1}}, {"event": CHANGE | {"subscriptionId": 2}}),
        ("netlify", DEPLOY | {"published_at": "2026-01-01"}, DEPLOY | {"published_at": "2026-01-02"}),
        ("contentful", {"sys": {"id": "e", "revision": 1, "environment": {"sys": {"id": "master"}}}},
         {"sys": {"id": "e", "revision": 1, "environment": {"sys": {"id": "staging"}}}}),
        ("messagebird", {"type": "message.created", "message": {"id": "m", "status": "pending"}},
         {"type": "message.updated", "message": {"id": "m", "status": "pending"}}),
        ("cloudevents", {"source": "urn:a", "id": "b:c", "type": "t"}, {"source": "urn:a:b", "id": "c", "type": "t"}),
        ("azure_event_grid", {"topic": "/a", "id": "b:c", "eventType": "t"},
         {"topic": "/a:b", "id": "c", "eventType": "t"}),
        ("mercado_pago", order("create", 0), order("update", 1)),
        ("microsoft_graph", graph(lifecycleEvent="reauthorizationRequired", subscriptionExpirationDateTime="1"),
         graph(lifecycleEvent="reauthorizationRequired", subscriptionExpirationDateTime="2")),
        ("meta", instagram({"mid": "m", "text": "hi"}), instagram({"mid": "m", "is_deleted": True})),
        ("mailchimp", b"type=upemail&fired_at=2026-01-01+00:00:00&data[list_id]=l&data[new_email]=a",
         b"type=upemail&fired_at=2026-01-01+00:00:00&data[list_id]=l&data[new_email]=b"),
        ("shippo", label("1"), label("2")),
        ("webex", room("a"), room("b")),
        ("bolt", {"id": "T", "type": "capture", "captures": [1]}, {"id": "T", "type": "capture", "captures": [2]}),
        ("paystack", reminder("1"), reminder("2")),
        ("cloudinary", moderated("pending"), moderated("approved")),
        ("travis_ci", built("2026-01-01T00:00:00Z"), built("2026-01-01T01:00:00Z")),
        ("brevo", clicked("https://a"), clicked("https://b")),
        ("grafana", {"status": "firing", "text": "a"}, {"status": "firing", "text": "b"}),
        ("grafana", b"disk full on a", b"disk full on b"),
        ("twilio", b"CallSid=CA1&CallStatus=in-progress&Digits=1", b"CallSid=CA1&CallStatus=in-progress&Digits=5"),
        ("twilio", b"CallSid=CA1&RecordingSid=RE1&RecordingStatus=in-progress",
         b"CallSid=CA1&RecordingSid=RE1&RecordingStatus=completed"),
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
        ("buildkite", FINISHED, {**FINISHED, "build": {**FINISHED["build"], "blocked": True}}),
        ("buildkite", FINISHED, {**FINISHED, "build": {**FINISHED["build"], "finished_at": "2026-01-01"}}),
        ("postmark", click("https://a"), click("https://b")),
        ("mandrill", tracked("click", url="https://a"), tracked("click", url="https://b")),
        ("mandrill", tracked("open", ip="1.2.3.4"), tracked("open", ip="1.2.3.5")),
        ("mailchannels", [{"event": "click", "timestamp": 1, "email": "a", "url": "a"}],
         [{"event": "click", "timestamp": 1, "email": "a", "url": "b"}]),
        ("paystack", {"event": "invoice.update", "data": {"id": 1, "paid": False}},
         {"event": "invoice.update", "data": {"id": 1, "paid": True}}),
        ("adyen", authorised(), authorised(success="false")),
        ("mongodb_atlas", {"id": "1", "status": "OPEN", "updated": "t", "lastNotified": "t"},
         {"id": "1", "status": "OPEN", "updated": "t", "lastNotified": "u"}),
    ],
)  # fmt: skip
def test_distinct_events_have_two_ids(name, one, other):
    headers = {"x_contentful_topic": "ContentManagement.Entry.publish"} if name == "contentful" else {}

    first, again, second = (
        [event.id for event in events_of(name, body, **headers)] for body in (one, one, other)
    )

    assert first == again
    assert set(first).isdisjoint(second)


@pytest.mark.parametrize(
    "event",
    [
        *("deploy_locked", "deploy_unlocked", "deploy_restored", "deploy_deleted", "deploy_request_accepted"),
        "split_test_activated",
    ],
)
def test_netlify_tells_other_events_from_the_deploy(event):
    created = event_of("netlify", DEPLOY, x_netlify_event="deploy_created")
    other = event_of("netlify", DEPLOY, x_netlify_event=event)
    later = event_of("netlify", DEPLOY | {"updated_at": "2026-01-02T00:00:00Z"}, x_netlify_event=event)

    assert created.id == "d1:ready"
    assert len({created.id, other.id, later.id}) == 3


def test_netlify_says_which_split_test_event_it_is():
    kinds = [
        event_of("netlify", {"id": "t"}, x_netlify_event=f"split_test_{what}")
        for what in ("activated", "modified")
    ]

    assert [event.type for event in kinds] == ["split_test_activated", "split_test_modified"]
    assert len({event.id for event in kinds}) == 2


def form(fields):
    return Delivery("POST", "https://h/x", {"content-type": FORM}, urlencode(fields).encode())


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        (conference("participant-join"), "participant-join"),
        (CALL | {"StreamSid": "MZ1", "StreamEvent": "stream-started"}, "stream-started"),
        (transcription(1), "transcription-content"),
        (CALL | {"TranscriptionSid": "TR1", "TranscriptionStatus": "completed"}, "transcription-completed"),
        (CALL | {"RecordingSid": "RE1", "RecordingStatus": "completed"}, "recording-completed"),
        (CALL | {"CallStatus": "completed"}, "completed"),
        ({"MessageSid": "SM1", "MessageStatus": "delivered"}, "delivered"),
        ({"MessageSid": "SM1", "SmsStatus": "received"}, "received"),
        (CALL, "call"),
    ],
)
def test_twilio_type_is_what_one_subscribes_to(fields, kind):
    assert event_of("twilio", fields).type == kind


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        ({"MessageSid": "SM1", "MessageStatus": "delivered"}, "SM1:delivered"),
        ({"MessageSid": "SM1", "SmsStatus": "received", "SmsSid": "SM1", "SmsMessageSid": "SM1"}, "SM1"),
        (CALL | {"CallStatus": "completed", "SequenceNumber": 3, "CallbackSource": "call-progress-events"},
         "CA1:completed:3"),
        (CALL | {"CallStatus": "ringing", "Direction": "inbound"}, "CA1:ringing"),
        (CALL | {"RecordingSid": "RE1", "RecordingStatus": "completed"}, "RE1:completed"),
        (CALL | {"Digits": "1234"}, "CA1"),
    ],
)  # fmt: skip
def test_twilio_event_is_known_by_what_it_is_about(fields, known):
    assert event_of("twilio", fields).id == known


def test_twilio_form_without_a_token_is_one_event_in_any_order():
    fields = conference("participant-join")

    one, other = (
        load("twilio").events(form(dict(pairs))) for pairs in (fields.items(), reversed(fields.items()))
    )

    assert one[0].id == other[0].id


def test_twilio_token_is_the_id_of_whatever_it_comes_with():
    event = event_of("twilio", conference("participant-join"), i_twilio_idempotency_token="t1")

    assert event.id == "t1"


def test_monday_attempt_that_says_so_is_the_same_event():
    monday = load("monday")
    first, retry = (
        Delivery("POST", "", {}, json.dumps({"event": CHANGE | {"isRetry": said}}).encode())
        for said in (False, True)
    )
    [event], [again] = monday.events(first), monday.events(retry)

    assert event.id == again.id
    assert fingerprint(first.body, monday.volatile) == fingerprint(retry.body, monday.volatile)


@pytest.mark.parametrize(
    "shifted",
    [
        {"order_id": "ORDER-12", "status_code": "01"},
        {"order_id": "ORDER-120", "status_code": "110", "gross_amount": "000.00"},
        {"order_id": "ORDER-", "status_code": "120", "gross_amount": "110000.00"},
        {"order_id": "ORDER-1201", "status_code": "1", "gross_amount": "0000.00"},
        {"order_id": "ORDER-120110000.0", "status_code": "0", "gross_amount": ""},
    ],
)
def test_midtrans_digest_of_one_order_is_not_that_of_another(shifted):
    genuine = {"order_id": "ORDER-1", "status_code": "201", "gross_amount": "10000.00"}
    provider, delivery = sent("midtrans", genuine)
    body = json.loads(delivery.body)

    said = {name: {**body, **shifted}[name] for name in genuine}

    assert "".join(said.values()) == "".join(genuine.values())
    assert reason_of(provider, delivery) is None
    assert reason_of(provider, changed(delivery, body | shifted)) == Reason.BAD_BODY


@pytest.mark.parametrize(
    "shifted",
    [
        {"account_id": "00000269-7836-49e5-bc65-e592afafec1", "account_status": "4ENABLED"},
        {"account_id": "00000269-7836-49e5-bc65-e592afafec14E", "account_status": "NABLED"},
        {"account_status": "ENABLED2", "status_code": "00"},
    ],
)
def test_midtrans_digest_of_one_account_is_not_that_of_another(shifted):
    case = captured_as("midtrans/pay-account")
    body = json.loads(case.delivery.body)

    assert case.verdict(case.delivery) is None
    assert case.verdict(changed(case.delivery, body | shifted)) == Reason.BAD_BODY


def changed(delivery, body):
    return replace(delivery, body=json.dumps(body).encode(), readings={})


def test_lever_takes_no_digit_of_the_token_for_one_of_the_time():
    provider, delivery = sent("lever", {"token": "abc1", "triggeredAt": 1431458021951, "event": "x"})
    body = json.loads(delivery.body)

    assert (
        reason_of(provider, changed(delivery, body | {"token": "abc", "triggeredAt": 11431458021951}))
        == Reason.BAD_BODY
    )
    assert (
        reason_of(provider, changed(delivery, body | {"token": "abc11", "triggeredAt": 431458021951}))
        == Reason.BAD_BODY
    )


@pytest.mark.parametrize(
    "shifted",
    [
        {"event_time": "176722560", "event_type": "0callback_test"},
        {"event_time": "1767225600c", "event_type": "allback_test"},
    ],
)
def test_dropbox_sign_takes_no_digit_of_the_time_for_a_letter_of_the_type(shifted):
    provider, delivery = sent(
        "dropbox_sign", {"event": {"event_time": "1767225600", "event_type": "callback_test"}}
    )
    event = json.loads(delivery.body[delivery.body.index(b"{") : delivery.body.rindex(b"}") + 1])["event"]

    assert reason_of(provider, changed(delivery, {"event": event})) is None
    assert reason_of(provider, changed(delivery, {"event": event | shifted})) == Reason.BAD_BODY


@pytest.mark.parametrize(
    "shifted",
    [
        {"amount": {"value": "1130:EUR", "currency": ""}},
        {"originalReference": "a:b", "merchantAccountCode": "c"},
        {"amount": {"value": 1130, "currency": "EUR:A"}},
    ],
)
def test_adyen_fields_with_a_form_can_not_be_shifted(shifted):
    adyen = load("adyen")
    item = {"pspReference": "1", "eventCode": "CAPTURE", "merchantAccountCode": "a:b", "merchantReference": "c:d",
            "amount": {"value": 1130, "currency": "EUR"}, "success": "true"}  # fmt: skip

    def verdict(said):
        body = json.dumps({"notificationItems": [{"NotificationRequestItem": said}]}).encode()
        return refusal(lambda: adyen.verify(adyen.delivery(body, KEY, NOW), [KEY], NOW))

    assert verdict(item) is None
    assert verdict(item | shifted) == Reason.BAD_BODY


def test_sns_value_on_a_line_of_its_own_has_one():
    said = {"Type": "Notification", "MessageId": "m", "TopicArn": "a", "Timestamp": "t", "Message": "a\nb"}
    provider = load("amazon_sns", options={"topics": ["arn:aws:sns:eu-west-1:1:name"]})

    assert provider.events(changed(form({}), said))
    assert refusal(lambda: provider.events(changed(form({}), said | {"Subject": "a\nb"}))) == Reason.BAD_BODY


@pytest.mark.parametrize(("method", "body"), [("POST", b""), ("GET", b"[]")])
def test_hubspot_takes_no_body_that_was_shifted_into_the_url(method, body):
    delivery = Delivery(method, "https://h/x?a=[]", {}, body)

    assert refusal(lambda: load("hubspot").events(delivery)) == Reason.BAD_BODY


def test_freshdesk_changes_within_the_hour_are_events_of_their_own():
    assert load("freshdesk").id_period == timedelta(minutes=1)
    assert load("freshdesk", options={"period": 3600}).id_period == timedelta(hours=1)
