"""`repeats = "hold"`, through the whole receiver: a signature that came before, however its delivery is written."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from tests.support.captured import captured_of

TOKEN = "i-twilio-idempotency-token"
SECRET = "auth-token-of-tests"
FORM = b"MessageSid=SM1&AccountSid=AC1&MessageStatus=delivered&To=%2B1555"
OTHERS = (
    b"To=%2B1555&MessageStatus=delivered&MessageSid=SM1&AccountSid=AC1",
    b"MessageSid=SM1&AccountSid=AC1&MessageStatus=%64elivered&To=%2B1555",
    b"MessageSid=SM1&AccountSid=AC1&MessageStatus=delivered&To=%2B1555&To=%2B1555",
)


@pytest.fixture
def source(request):
    """A source of this test's own, since all of them share a ledger."""
    return f"calls-{sha256(request.node.name.encode()).hexdigest()[:8]}"


@pytest.fixture
def twilio(receiver, source):
    """Sends a form as Twilio would have signed it, under the token that is given."""
    provider = load("twilio")
    receiver.add(source, provider, SECRET, repeats="hold")
    url = f"https://hooks.example.com/hooks/{source}"
    genuine = provider.delivery(FORM, SECRET, receiver.now, url=url)

    def send(body, token):
        answer = receiver.send(source, Delivery("POST", url, {**genuine.headers, TOKEN: token}, body))
        assert answer.status_code == 200
        [(status,)] = receiver.query(
            "SELECT status FROM hookonce.event_states WHERE (source, event_id) = (%s, %s)", source, token
        )
        return status

    return send


def test_form_in_another_order_under_another_id_is_held(twilio):
    first = twilio(FORM, "t0")

    again = [twilio(body, f"t{n}") for n, body in enumerate(OTHERS, start=1)]

    assert first == "received"
    assert again == ["held"] * len(OTHERS)


def test_mark_from_before_holds_on(receiver, twilio, source):
    provider = receiver.sources[source].provider
    receiver.sources[source] = replace(
        receiver.sources[source], provider=replace(provider, signed_message=None)
    )
    stored_before = twilio(FORM, "t0")
    receiver.sources[source] = replace(receiver.sources[source], provider=provider)

    again = [twilio(FORM, "t1"), twilio(OTHERS[0], "t2")]

    assert stored_before == "received"
    assert again == ["held", "held"]


def test_event_that_is_gone_marks_nothing(receiver, twilio, source):
    twilio(FORM, "t0")
    receiver.query("DELETE FROM hookonce.events WHERE source = %s RETURNING id", source)

    assert twilio(OTHERS[0], "t1") == "received"
    assert receiver.query("SELECT count(*) FROM hookonce.repeat_marks WHERE source = %s", source) == [(1,)]


@pytest.mark.parametrize(
    "name", ["gitea_forgejo/gitea-form", "mercado_pago/", "midtrans/settlement", "lever/"]
)
def test_same_signature_on_another_body_is_held(receiver, source, name):
    sender = name.partition("/")[0]
    case = next(case for case in captured_of(sender) if case.name.startswith(name) and case.is_genuine)
    receiver.now = case.now
    receiver.add(source, case.provider, case.secret, repeats="hold")
    forged = replace(
        case.delivery,
        body=another(case.delivery.body),
        headers=renamed(case.delivery.headers),
        readings={},
    )

    answers = [receiver.send(source, each).json for each in (case.delivery, forged)]

    assert [answer["events"][0]["status"] for answer in answers] == ["accepted", "held"]


def another(body):
    """Another body that the same signature is right for."""
    if body[:1] != b"{":
        return body + b"&made=up"
    said = json.loads(body)
    return json.dumps(said | {"id": "4711", "made": "up"}).encode()


def renamed(headers):
    return {
        name: value[:-1] + "0" if name.endswith("-delivery") else value for name, value in headers.items()
    }
