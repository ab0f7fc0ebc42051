"""Deliveries of senders from L to Z that look unlike the common ones: other kinds of events, other shapes."""

import hmac
import json
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import FORM
from hookonce.providers.kit.reading.multipart import parts_in
from hookonce.providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "a-secret-of-thirty-two-characters"
STAMP, NONCE = str(int(NOW.timestamp())), "b" * 50


def events_of(name, body, **headers):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return load(name).events(Delivery("POST", "https://h/x", headers, raw))


def test_woocommerce_events_of_one_second_are_told_apart_by_their_bodies():
    second = {"x-wc-webhook-delivery-id": "0" * 32}

    ids = {events_of("woocommerce", {"id": order}, **second)[0].id for order in (1, 2, 2)}

    assert len(ids) == 2


def test_gitlab_that_is_too_old_to_send_ids_is_taken():
    [event] = events_of("gitlab", {"object_kind": "push"}, **{"x-gitlab-event": "Push Hook"})

    assert event.id == events_of("gitlab", {"object_kind": "push"}, **{"x-gitlab-event": "Push Hook"})[0].id


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"number=7&kind=paid", ("7", "paid")),
        (b'\xef\xbb\xbf{"number": 7, "kind": "paid"}', ("7", "paid")),
        (b"<paid/>", ("fallback", "unknown")),
    ],
)
def test_sender_without_a_module_may_send_json_forms_or_text(body, found):
    places = (
        {"id": "$.number", "type": "$.kind"}
        if b"7" in body
        else {"id": "header:X-Id", "type": "fixed:unknown"}
    )
    provider = load("hmac", options={"header": "x-signature", **places})
    headers = {"x-id": "fallback", "content-type": FORM if b"&" in body else "application/octet-stream"}

    [event] = provider.events(Delivery("POST", "https://h/x", headers, body))

    assert (event.id, event.type) == found


def test_microsoft_graph_id_does_not_depend_on_the_state_that_is_the_secret():
    told = {"subscriptionId": "s", "changeType": "updated", "resource": "r"}
    kept, rotated = ({"value": [{**told, "clientState": state}]} for state in "cd")

    assert events_of("microsoft_graph", kept)[0].id == events_of("microsoft_graph", rotated)[0].id


@pytest.mark.parametrize(
    ("name", "body", "kind"),
    [
        ("meta", {"app_id": "1", "topic": "moderate", "target_id": "7", "time": 1767225600,
                  "values": {"field": "replies", "value": {"id": "8"}}}, "replies"),
        ("monday", {"payload": {"blockKind": "action"}, "runtimeMetadata": {"actionUuid": "u"}}, "action"),
        ("telnyx", b"CallSid=v3%3A1&CallStatus=completed&AccountSid=A", "completed"),
        ("openai", {"id": "evt_1", "data": {}}, "unknown"),
        ("sinch", {"app_id": "a", "event_time": "t", "message_delivery_report": {}}, "message_delivery_report"),
        ("vercel", [{"message": "a"}], "unknown"),
        ("vercel", b'{"message":"a"}\n{"message":"b"}', "unknown"),
        ("slack", {"token": "x", "event": {}}, "unknown"),
        ("shopify", b"<?xml version='1.0'?><order/>", "orders/create"),
        ("kick", {"claim_id": "c"}, "unknown"),
        ("standard_webhooks", b"<a/>", "unknown"),
        ("supabase_auth_hooks", {"user_id": "u", "claims": {}}, "customize-access-token"),
    ],
)  # fmt: skip
def test_kind_of_event_that_few_have_seen_is_taken(name, body, kind):
    headers = {"content-type": FORM if isinstance(body, bytes) else "application/json"}
    named = {"webhook-id": "w", "kick-event-message-id": "k", "x-shopify-topic": "orders/create"}

    assert [event.type for event in events_of(name, body, **headers, **named)] == [kind]


def test_id_that_is_an_empty_text_is_none():
    assert events_of("rootly", {"event": {"id": "", "type": "incident.created"}})[0].id != ""


def test_twilio_event_streams_are_batches():
    url, body = (
        "https://h/hooks/it",
        b'[{"id":"EZ1","type":"com.twilio.a"},{"id":"EZ2","type":"com.twilio.b"}]',
    )
    provider = load("twilio")
    delivery = provider.delivery(body, SECRET, NOW, url=url)

    provider.verify(delivery, [SECRET], NOW)

    assert [(event.id, event.type) for event in provider.events(delivery)] == [
        ("EZ1", "com.twilio.a"),
        ("EZ2", "com.twilio.b"),
    ]


def test_salesforce_keeps_a_notification_that_it_cannot_read():
    space = "http://soap.sforce.com/2005/09/outbound"
    notes = "<Notification><Id>04l1</Id><sObject/></Notification><Notification><Id>04l2</Id></Notification>"
    body = f'<e><notifications xmlns="{space}"><OrganizationId>o</OrganizationId>{notes}</notifications></e>'

    good, bad = events_of("salesforce", body.encode())

    assert (good.id, bad.type) == ("04l1", "unreadable")
    assert b"04l2" in bad.raw


@pytest.mark.parametrize("place", ["x-signature-primary", "x-signature-secondary"])
def test_primer_takes_the_signature_of_either_secret(place):
    provider = load("primer")
    made = provider.sign(b"{}", SECRET, NOW)["x-signature-primary"]
    other = provider.sign(b"{}", SECRET + "2", NOW)["x-signature-primary"]
    headers = {"x-signature-primary": other, "x-signature-secondary": other, place: made}

    provider.verify(Delivery("POST", "", headers, b"{}"), [SECRET], NOW)
    with pytest.raises(Rejected):
        provider.verify(Delivery("POST", "", {**headers, place: other}, b"{}"), [SECRET], NOW)


def mailgun_signature(secret):
    return hmac.new(secret.encode(), f"{STAMP}{NONCE}".encode(), sha256).hexdigest()


@pytest.mark.parametrize(("own", "parent", "reason"), [
    (SECRET, "other", None), ("other", SECRET, None), ("other", "another", Reason.BAD_SIGNATURE),
])  # fmt: skip
def test_mailgun_takes_the_signature_of_the_main_account(own, parent, reason):
    said = {"timestamp": STAMP, "token": NONCE, "signature": mailgun_signature(own)}
    body = {"signature": {**said, "parent-signature": mailgun_signature(parent)}, "event-data": {"id": "1"}}
    delivery = Delivery("POST", "", {}, json.dumps(body).encode())

    try:
        load("mailgun").verify(delivery, [SECRET], NOW)
        found = None
    except Rejected as error:
        found = error.reason

    assert found == reason


def test_mailgun_mail_with_an_attachment_is_read():
    fields = {"timestamp": STAMP, "token": NONCE, "signature": mailgun_signature(SECRET), "subject": "Grüße"}
    parts = [
        f'--b\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{text}\r\n'
        for key, text in fields.items()
    ]
    file = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a;b.bin"\r\n\r\n\xff--b\r\n--x\r\n--b--\r\n'
    body = "".join(parts).encode() + file
    delivery = Delivery("POST", "", {"content-type": "multipart/form-data; boundary=b"}, body)

    load("mailgun").verify(delivery, [SECRET], NOW)

    [event] = load("mailgun").events(delivery)
    assert (event.type, event.data) == ("inbound", fields)


@pytest.mark.parametrize(
    "body", [b"--", b"--b", b"--b\r\n--b\r\n", b"--\r\n\r\n--", b"--b\r\n\r\n\r\nx", b"x", b""]
)
def test_multipart_form_without_fields_has_none(body):
    assert parts_in(body) == {}


@pytest.mark.parametrize(("signed", "taken"), [(True, True), (False, False)])
def test_notion_token_may_come_signed_with_itself(signed, taken):
    body = b'{"verification_token":"secret_abcdefgh"}'
    made = load("notion").sign(body, "secret_abcdefgh" if signed else "another", NOW)

    reply = load("notion").handshake(Delivery("POST", "", made, body), [])

    assert (reply is not None) == taken


def test_zendesk_template_that_makes_no_json_is_an_event():
    [event] = events_of("zendesk", b'{"comment": "say "hi""}', **{"x-zendesk-webhook-invocation-id": "i"})

    assert (event.id, event.type, event.data) == ("i", "unknown", None)


@pytest.mark.parametrize(
    ("name", "method"),
    [("zendesk", "PUT"), ("svix", "PUT"), ("sanity", "GET"), ("upstash_qstash", "DELETE"), ("twilio", "GET")],
)
def test_sender_may_send_by_another_method(name, method):
    assert method in load(name).methods


def test_telegram_time_is_that_of_whatever_was_updated():
    [event] = events_of("telegram", {"update_id": 1, "edited_channel_post": {"date": int(STAMP)}})

    assert event.occurred_at == NOW


def test_lark_time_with_a_fraction_is_read():
    [event] = events_of("lark_feishu", {"uuid": "u", "ts": "1767225600.5", "event": {"type": "message"}})

    assert event.occurred_at == datetime(2026, 1, 1, 0, 0, 0, 500000, UTC)


@pytest.mark.parametrize(("start", "reason"), [(b"a=", Reason.MISSING_HEADER), (b'{"a":', Reason.TOO_LARGE)])
def test_mailgun_mail_may_be_larger_than_a_report(start, reason):
    form = {"content-type": FORM}

    with pytest.raises(Rejected) as refused:
        load("mailgun").verify(Delivery("POST", "", form, start + b"1" * (1 << 20)), [SECRET], NOW)

    assert refused.value.reason == reason
