"""Every probe that was captured or documented, over HTTP: answered as its sender wants, and nothing is stored."""

import contextlib
import hashlib
import json

import pytest
import responses

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from tests.support.captured import captured
from tests.support.for_each import for_each
from tests.support.in_process import PUBLIC_URL, Receiver


def probes():
    return [case for case in captured() if case.reply is not None]


@pytest.fixture
def web():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


@pytest.fixture(autouse=True)
def nothing_stored(receiver):
    yield
    assert receiver.query("SELECT event_id FROM hookonce.event_states") == []


def expected_of(case, name):
    if name != "ebay":
        return case.reply
    code = case.delivery.url.partition("challenge_code=")[2]
    token = "71745723-d031-455c-bfa5-f90d11b4f20a-verification"
    answer = hashlib.sha256(f"{code}{token}{PUBLIC_URL}/hooks/ebay".encode()).hexdigest()
    return {"status": 200, "json": {"challengeResponse": answer}}


@for_each(probes)
def test_probe_is_answered_as_its_sender_wants(case, receiver, web):
    web.reset()
    name = str(case).partition("/")[0]
    receiver.add(name, case.provider, case.secret)
    receiver.now = case.now
    for url, document in case.keys.items():
        web.get(url, body=document)
    if case.reply.get("fetch"):
        web.get(case.reply["fetch"])

    answer = receiver.send(name, case.delivery)

    expected = expected_of(case, name)
    assert answer.status_code == expected["status"], answer.data
    if case.delivery.method != "HEAD":
        body = json.loads(answer.data) if "json" in expected else answer.text
        assert body == expected.get("json", expected.get("body", ""))
    assert expected.get("headers", {}).items() <= dict(answer.headers).items()
    if expected.get("fetch"):
        assert expected["fetch"] in [call.request.url for call in web.calls]


@pytest.fixture
def other_receiver(database_url, redis_url):
    """One of the test's own, for what fails is left alone for a while."""
    with contextlib.closing(Receiver(database_url, redis_url)) as running:
        yield running


@for_each(lambda: [case for case in probes() if case.reply.get("fetch")])
def test_subscription_is_not_confirmed_while_its_url_does_not_answer(case, other_receiver, web):
    web.reset()
    receiver = other_receiver
    receiver.add("sns", case.provider, case.secret)
    receiver.now = case.now
    for url, document in case.keys.items():
        web.get(url, body=document)
    web.get(case.reply["fetch"], status=500)

    answer = receiver.send("sns", case.delivery)

    assert (answer.status_code, json.loads(answer.data)["code"]) == (503, "key_unavailable")


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("name", ["slack", "stripe"])
def test_what_is_no_probe_is_no_delivery_either(receiver, method, name):
    receiver.add(name, load(name), "secret")

    assert receiver.send(name, Delivery(method, "", {}, b"")).status_code in {204, 401, 405}
