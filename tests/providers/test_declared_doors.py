"""What declared sources say of how their sender comes: by which methods and probes, with which headers, in a batch."""

import json

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from tests.support.senders import NOW

PLACES = {"id": "$.id", "type": "$.type"}
DECLARED = {
    "token": {"in": "header:X-Token"},
    "hmac": {"header": "X-Signature"},
    "signed": {"header": "X-Signature", "algorithm": "ed25519"},
    "jwt": {"in": "header:X-Jwt", "algorithms": ["RS256"], "body_hash": "hash"},
}
SECRET = "token-of-tests-0123456789"


def declared(name, **options):
    return load(name, options=DECLARED[name] | PLACES | options)


@pytest.mark.parametrize(("option", "answered"), [("head", {"HEAD"}), ("get", {"GET", "HEAD"})])
@pytest.mark.parametrize("name", DECLARED)
def test_declared_source_answers_the_probe_of_its_option(name, option, answered):
    handshake = declared(name, challenge=option).handshake

    replies = {
        method: handshake(Delivery(method, "", {}, b""), [SECRET])
        for method in ("GET", "HEAD", "POST", "OPTIONS")
    }

    assert {method for method, reply in replies.items() if reply} == answered
    assert {reply.status for reply in replies.values() if reply} == {200}
    assert declared(name).handshake is None


def test_probe_with_a_wrong_token_gets_no_answer():
    handshake = declared("token", challenge="head").handshake

    assert handshake(Delivery("HEAD", "", {"x-token": SECRET + "x"}, b""), [SECRET]) is None


@pytest.mark.parametrize("name", DECLARED)
def test_declared_source_takes_the_methods_of_its_option(name):
    assert declared(name).methods == ("POST",)
    assert declared(name, methods=["PUT", "PATCH"]).methods == ("PUT", "PATCH")
    with pytest.raises(ValueError, match=r"methods is .'GET'., expected a list of some of POST, PUT, PATCH"):
        declared(name, methods=["GET"])


@pytest.mark.parametrize("name", ["token", "hmac", "signed"])
def test_first_place_counts_that_a_delivery_has(name):
    provider = declared(name, id=["header:X-Id", "$.data.id", "$.id"], type=["$.event", "$.type"])

    def read(headers, **body):
        [event] = provider.events(Delivery("POST", "", headers, json.dumps(body).encode()))
        return event.id, event.type

    assert read({"x-id": "h"}, id="b", event="e", type="t") == ("h", "e")
    assert read({}, data={"id": "d"}, id="b", event=None, type="t") == ("d", "t")
    assert read({}, id="b", type="t") == ("b", "t")


@pytest.mark.parametrize("places", [[], ["$.id", 7], ["$.id", "fingerprint"], ["fixed:x", "$.id"]])
def test_list_of_places_is_refused_with_the_place_that_is_wrong(places):
    with pytest.raises(ValueError, match=r"id is .*expected|id is .*the same for every event"):
        declared("hmac", id=places)


def test_id_is_signed_only_where_each_of_its_places_is():
    assert declared("hmac", id=["$.id", "$.data.id"]).id_is_signed
    assert not declared("hmac", id=["$.id", "header:X-Id"]).id_is_signed


def test_test_delivery_comes_by_the_first_of_the_methods():
    provider = declared("hmac", methods=["PUT"], signed="{method}{body}")

    delivery = provider.delivery(b"{}", SECRET, NOW)

    provider.verify(delivery, [SECRET], NOW)
    assert delivery.method == "PUT"


UNDERSCORES = {
    "in of token": ("token", {"in": "header:x_key"}),
    "in of jwt": ("jwt", {"in": "header:x_key"}),
    "signature of hmac": ("hmac", {"header": "x_key"}),
    "one of several signatures": ("hmac", {"header": ["x-key", "x_key"]}),
    "signature of signed": ("signed", {"header": "x_key"}),
    "name of a key": ("signed", {"jwks": "https://a.example/k", "key_id": "x_key"}),
    "signed time": ("hmac", {"signed": "{timestamp}{body}", "timestamp": "x_key"}),
    "signed header": ("hmac", {"signed": "{header:x_key}{body}"}),
    "id": ("token", {"id": "header:x_key"}),
    "type": ("token", {"type": "header:x_key"}),
    "account": ("hmac", {"account": "header:x_key"}),
    "challenge": ("token", {"challenge": "header:x_key"}),
}


@pytest.mark.parametrize(("name", "options"), UNDERSCORES.values(), ids=UNDERSCORES)
def test_header_with_an_underscore_is_no_place_of_anything(name, options):
    with pytest.raises(ValueError, match=r"header 'x_key' never arrives, .* have the sender call it 'x-key'"):
        declared(name, **options)


def test_token_brings_a_batch():
    provider = declared("token", items="$.events", id="fingerprint")
    body = json.dumps(
        {"events": [{"id": 1, "type": "a"}, {"id": 2, "type": "b"}, {"id": 1, "type": "a"}]}
    ).encode()

    events = provider.events(Delivery("POST", "", {}, body))

    assert [(event.type, event.raw) for event in events[:2]] == [
        ("a", b'{"id": 1, "type": "a"}'),
        ("b", b'{"id": 2, "type": "b"}'),
    ]
    assert events[0].id == events[2].id != events[1].id
