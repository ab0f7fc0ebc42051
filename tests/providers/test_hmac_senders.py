"""What single senders that sign with an HMAC do besides the contract."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from providers import Delivery, Reason, Rejected
from providers.kit.registry import load

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


def test_docusign_retry_has_the_same_id():
    body = {"event": "e", "data": {"envelopeId": "x"}}
    ids = {load("docusign").events(sent("docusign", body | {"retryCount": n}))[0].id for n in range(3)}

    assert len(ids) == 1


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


def test_dropbox_notifications_are_told_apart_by_the_minute():
    assert load("dropbox").id_period == timedelta(minutes=1)
