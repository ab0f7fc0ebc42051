"""What single senders that sign with an HMAC do besides the contract."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "secret-of-tests"
HANDED_OUT = "b537207f20cbfa02357cf448134da559"


def sent(name, body, secret=SECRET, **said):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return load(name).delivery(body, secret, NOW, **said)


def reason_of(name, delivery, *secrets, now=NOW):
    try:
        load(name).verify(delivery, secrets, now)
    except Rejected as error:
        return error.reason
    return None


def asana_handshake(value=HANDED_OUT, *, method="POST", known=(), **headers):
    delivery = Delivery(method, "", {"x-hook-secret": value} | headers, b"{}")
    return load("asana").handshake(delivery, known)


def test_asana_hands_out_a_secret_that_is_given_back_and_said():
    reply = asana_handshake()

    assert (reply.status, reply.headers, reply.secret) == (200, {"X-Hook-Secret": HANDED_OUT}, HANDED_OUT)


def test_asana_says_nothing_of_a_secret_that_is_configured_already():
    reply = asana_handshake(known=["other", HANDED_OUT])

    assert (reply.headers, reply.secret) == ({"X-Hook-Secret": HANDED_OUT}, None)


@pytest.mark.parametrize("value", ["", "short", "x" * 129, "a\r\nSet-Cookie: b" * 3, "é" * 20])
def test_asana_gives_back_nothing_that_is_no_secret(value):
    assert asana_handshake(value) is None


def test_asana_event_with_a_secret_beside_it_is_no_handshake():
    assert asana_handshake(**{"x-hook-signature": "0" * 64}) is None


def test_asana_ids_differ_by_what_happened():
    event = {"action": "added", "resource": {"gid": "1", "resource_type": "task"}, "created_at": "a"}
    others = [event | {"action": "removed"}, event | {"created_at": "b"}, event | {"parent": {"gid": "2"}}]
    delivery = sent("asana", {"events": [event, *others, event]})

    ids = [event.id for event in load("asana").events(delivery)]

    assert len(set(ids[:4])) == 4
    assert ids[0] == ids[4]


@pytest.mark.parametrize(("given", "reason"), [(SECRET, None), ("other", Reason.BAD_SIGNATURE)])
def test_buildkite_takes_the_token_where_nothing_is_signed(given, reason):
    delivery = Delivery("POST", "", {"x-buildkite-token": given}, b"{}")

    assert reason_of("buildkite", delivery, SECRET) == reason


def test_buildkite_trusts_the_signature_before_the_token():
    signed = sent("buildkite", {"event": "ping"})
    delivery = replace(signed, headers={**signed.headers, "x-buildkite-token": SECRET}, body=b"{}")

    assert reason_of("buildkite", delivery, SECRET) == Reason.BAD_SIGNATURE


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
@pytest.mark.parametrize("name", ["trello", "intercom", "mandrill"])
def test_only_head_is_a_probe_of_those_that_probe_by_head(name, method):
    probe = Delivery(method, "", {}, b"")

    assert load(name).handshake(probe, []) is None
    assert load(name).handshake(replace(probe, method="HEAD"), []).status == 200


def test_mandrill_delivery_with_events_is_no_probe():
    delivery = Delivery("POST", "", {}, b'mandrill_events=[{"event":"send","_id":"a","ts":1}]')

    assert load("mandrill").handshake(delivery, []) is None


def test_docusign_looks_at_every_numbered_signature():
    signed = sent("docusign", {"event": "e"})
    value = signed.headers["x-docusign-signature-1"]
    forged = {f"x-docusign-signature-{n}": "A" * 43 + "=" for n in range(1, 100)}

    last = replace(signed, headers=forged | {"x-docusign-signature-100": value})
    assert reason_of("docusign", last, SECRET) is None
    assert reason_of("docusign", replace(signed, headers=forged), SECRET) == Reason.BAD_SIGNATURE


def test_box_takes_either_of_its_two_signatures():
    signed = sent("box", {"trigger": "FILE.UPLOADED"})
    moved = dict(signed.headers)
    moved["box-signature-secondary"] = moved.pop("box-signature-primary")

    assert reason_of("box", replace(signed, headers=moved), "other", SECRET) is None
    assert reason_of("box", signed, SECRET, now=NOW + timedelta(minutes=11)) == Reason.STALE


def test_ably_key_that_is_named_must_be_one_of_the_source():
    key = "app.one:key-of-one"
    delivery = sent("ably", {"items": []}, secret=key)

    assert reason_of("ably", delivery, "app.two:key-of-two", key) is None
    assert reason_of("ably", delivery, "app.two:key-of-one") == Reason.BAD_SIGNATURE


def test_attio_events_of_two_deliveries_differ_though_they_say_the_same():
    body = {"webhook_id": "w", "events": [{"event_type": "record.updated", "id": {"record_id": "r"}}]}
    ids = {load("attio").events(sent("attio", body, event_id=key))[0].id for key in ("k1", "k2", "k2")}

    assert len(ids) == 2


@pytest.mark.parametrize(
    ("name", "secret", "expected"),
    [
        ("ably", "only-the-secret", "key name:key secret"),
        ("surveymonkey", "only-the-secret", "<client id>&<client secret>"),
        ("authorize_net", "not hex", "hex digits"),
        ("onfleet", "abc", "hex digits"),
        ("airtable", "a", "base64"),
        ("dub", " ", "not blank"),
    ],
)
def test_secret_of_the_wrong_form_is_refused_with_what_a_right_one_looks_like(name, secret, expected):
    with pytest.raises(ValueError, match=f"expected .*{expected}"):
        load(name).check_secret(secret)


@pytest.mark.parametrize("query", ["", "other=1", "challenge=", "challenge=%00", "challenge=" + "a" * 5000])
def test_dropbox_gives_back_nothing_but_a_challenge(query):
    delivery = Delivery("GET", f"https://h.example/hooks/dropbox?{query}", {}, b"")

    assert load("dropbox").handshake(delivery, []) is None


PAIR = "integration_public_key:integration_private_key"


def braintree(payload, signature="", *, known=(PAIR,)):
    fields = {"bt_signature": signature, "bt_payload": payload}
    delivery = Delivery("POST", "", {}, urlencode(fields).encode())
    return reason_of("braintree", delivery, *known)


def test_braintree_challenge_is_no_signature_for_a_payload():
    challenge = "20f9f8ed05f77439fe955c977e4c8a53"
    probe = Delivery("GET", f"https://h.example/?bt_challenge={challenge}", {}, b"")

    answer = load("braintree").handshake(probe, [PAIR]).body.decode()

    for payload in (challenge, challenge + "\n", "\n" + challenge):
        assert braintree(payload, answer) in {Reason.BAD_BODY, Reason.BAD_SIGNATURE}


@pytest.mark.parametrize(
    "challenge", ["", "PD94bWw=", "a" * 19, "a" * 33, "A" * 20, "g" * 20, "a" * 20 + "%0A"]
)
def test_braintree_signs_no_other_challenge(challenge):
    probe = Delivery("GET", f"https://h.example/?bt_challenge={challenge}", {}, b"")

    assert load("braintree").handshake(probe, [PAIR]) is None
    assert load("braintree").handshake(replace(probe, method="POST"), [PAIR]) is None


def test_braintree_takes_its_keys_as_json_too():
    pair = json.dumps({"public_key": "integration_public_key", "private_key": "integration_private_key"})
    delivery = sent("braintree", b"<notification/>", secret=PAIR)

    assert reason_of("braintree", delivery, "nonsense", pair) is None
    assert reason_of("braintree", delivery, "nonsense") == Reason.NO_SECRET


@pytest.mark.parametrize(
    "document",
    [b'<!DOCTYPE a [<!ENTITY b "c">]><notification><kind>&b;</kind></notification>', b"<a", b"", b"\xff"],
)
def test_braintree_notification_that_is_no_plain_xml_is_bad_body(document):
    delivery = sent("braintree", document, secret=PAIR)

    with pytest.raises(Rejected, match="bad_body"):
        load("braintree").events(delivery)


def test_twilio_json_mode_needs_the_hash_even_if_the_body_is_empty():
    signed = sent("twilio", {"MessageSid": "IM1"}, url="https://h.example/hooks/twilio?a=1")

    assert "&bodySHA256=" in signed.url
    assert reason_of("twilio", signed, SECRET) is None
    assert reason_of("twilio", replace(signed, body=b""), SECRET) == Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("https://h.example/x", "https://h.example:443/x"),
        ("https://h.example:443/x", "https://h.example/x"),
        ("http://user:pass@h.example/x?y=1:2", "http://user:pass@h.example:80/x?y=1:2"),
    ],
)
def test_twilio_url_may_be_signed_with_and_without_its_port(ours, theirs):
    signed = sent("twilio", b"CallSid=CA1", url=theirs)

    assert reason_of("twilio", replace(signed, url=ours), SECRET) is None
    assert reason_of("twilio", replace(signed, url=ours + "/"), SECRET) == Reason.BAD_SIGNATURE


def test_twilio_messages_status_by_status_are_different_events():
    bodies = (b"MessageSid=SM1&MessageStatus=" + status for status in (b"sent", b"delivered", b"sent"))
    ids = [load("twilio").events(Delivery("POST", "", {}, body))[0].id for body in bodies]

    assert ids == ["SM1:sent", "SM1:delivered", "SM1:sent"]


def test_contentful_idempotency_key_counts_only_if_signed():
    signed = sent("contentful", {"sys": {"id": "e", "revision": 1}}, secret="a" * 64, event_id="key-1")
    bare = sent("contentful", {"sys": {"id": "e", "revision": 1}}, secret="a" * 64)
    listed = "x-contentful-signed-headers"
    stripped = replace(bare, headers={**bare.headers, listed: "x-contentful-topic"})

    ids = [load("contentful").events(delivery)[0].id for delivery in (signed, stripped)]

    assert ids == ["key-1", "ContentManagement.Entry.publish:e:1"]
    assert reason_of("contentful", stripped, "a" * 64) == Reason.BAD_SIGNATURE


def test_url_senders_verify_under_the_url_that_is_configured_and_no_other():
    for name, body in (("trello", b"{}"), ("mandrill", b"mandrill_events=[]"), ("twilio", b"CallSid=CA1")):
        signed = sent(name, body, url="https://h.example/hooks/x?a=1")

        assert reason_of(name, signed, SECRET) is None
        assert (
            reason_of(name, replace(signed, url="https://h.example/hooks/x"), SECRET) == Reason.BAD_SIGNATURE
        )
