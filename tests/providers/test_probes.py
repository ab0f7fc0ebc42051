"""Probes of the URL: who is answered, what with, and that no answer is a signature that somebody could use."""

import json
from datetime import UTC, datetime

import pytest

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.registry import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "a-secret-of-thirty-two-characters"
URL = "https://hooks.example.com/hooks/it?"

ORACLES = {
    "x_twitter": ("crc_token", "x-twitter-webhooks-signature", lambda text: f"sha256={text}"),
    "linkedin": ("challengeCode", "x-li-signature", str),
}


def probe(name, query, secrets=(SECRET,)):
    return load(name).handshake(Delivery("GET", URL + query, {}, b""), list(secrets))


def refused(call):
    with pytest.raises(Rejected) as error:
        call()
    return error.value.reason


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(
    "text",
    [
        "%7B%22id%22%3A1%7D", "%5B%7B%7D%5D", "{}", "%5B1%5D", "%22a%22", "hmacsha256%3D%7B%7D", "v0:1:%7B%7D",
        "a%20b", "a%00", "", "a" * 201, "%C3%A9", "a.b", "%FF",
    ],
)  # fmt: skip
def test_proof_is_refused_to_text_that_could_be_a_body(name, text):
    parameter, *_ = ORACLES[name]

    assert probe(name, f"{parameter}={text}") is None


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("text", ["123", "true", "null", "abc", "MTIz", "hmacsha256", "A-_/z"])
def test_proof_of_a_word_is_no_signature_of_an_event(name, text):
    parameter, signature, spell = ORACLES[name]
    provider = load(name)
    answer = json.loads(probe(name, f"{parameter}={text}").body)
    given = next(value for key, value in answer.items() if key in {"response_token", "challengeResponse"})

    forged = Delivery("POST", URL, {signature: given}, text.encode())

    def take():
        provider.verify(forged, [SECRET], NOW)
        provider.events(forged)

    assert given == spell(given.removeprefix("sha256="))
    assert refused(take) in {Reason.BAD_SIGNATURE, Reason.BAD_BODY}


@pytest.mark.parametrize("name", ORACLES)
def test_proof_is_not_given_without_a_secret(name):
    parameter, *_ = ORACLES[name]

    assert refused(lambda: probe(name, f"{parameter}=abc", [" "])) == Reason.NO_SECRET


def zoom_probe(token, secret=SECRET):
    body = json.dumps({"event": "endpoint.url_validation", "payload": {"plainToken": token}}).encode()
    provider = load("zoom")
    return provider, Delivery("POST", "", provider.sign(body, secret, NOW), body)


@pytest.mark.parametrize("token", ["v0:1767225600:{}", "{}", "", 1, None, ["a"], "a b", "a" * 201, "\ud800"])
def test_zoom_proves_nothing_of_odd_tokens(token):
    provider, delivery = zoom_probe(token)

    assert provider.handshake(delivery, [SECRET]) is None


@pytest.mark.parametrize("secrets", [[SECRET], ["other", SECRET], ["", "other", SECRET]])
def test_zoom_answers_with_the_secret_that_signed_the_probe(secrets):
    provider, delivery = zoom_probe("qgg8vlvZRS6UYooatFL8Aw")

    answer = json.loads(provider.handshake(delivery, secrets).body)

    assert answer == json.loads(provider.handshake(delivery, [SECRET]).body)


def test_zoom_answers_nobody_else():
    provider, delivery = zoom_probe("abc", "other")

    assert provider.handshake(delivery, [SECRET]) is None
    assert provider.handshake(delivery, []) is None


@pytest.mark.parametrize(
    ("query", "secrets", "status"),
    [
        ("hub.mode=subscribe&hub.verify_token=vt&hub.challenge=7", ["app", "vt"], 200),
        ("hub.mode=subscribe&hub.verify_token=vt&hub.challenge=7", ["app", "verify:vt"], 200),
        ("hub.mode=subscribe&hub.verify_token=verify%3Avt&hub.challenge=7", ["app", "verify:vt"], 403),
        ("hub.mode=subscribe&hub.verify_token=no&hub.challenge=7", ["app", "verify:vt"], 403),
        ("hub.mode=subscribe&hub.verify_token=&hub.challenge=7", ["app", "verify:", ""], 403),
        ("hub.mode=subscribe&hub.challenge=7", ["app", "verify:vt"], 403),
        ("hub.mode=subscribe&hub.verify_token=vt&hub.challenge=7", [], 403),
        ("hub.mode=subscribe&hub.verify_token=vt&hub.challenge=%00", ["vt"], 403),
        ("hub.mode=subscribe&hub.verify_token=%C3%A9&hub.challenge=7", ["é"], 200),
        ("hub.verify_token=vt&hub.challenge=7", ["vt"], None),
        ("hub.mode=unsubscribe&hub.verify_token=vt&hub.challenge=7", ["vt"], None),
        ("hub.mode=subscribe&hub.verify_token=vt", ["vt"], None),
    ],
)
def test_meta_answers_who_knows_the_verify_token(query, secrets, status):
    reply = probe("meta", query, secrets)

    assert (reply.status if reply else None) == status
    assert reply is None or reply.body == (b"7" if status == 200 else b"")


def test_meta_verify_token_signs_nothing():
    provider = load("meta")
    body = b'{"object":"page","entry":[]}'

    for secret in ("verify:vt", "vt"):
        forged = Delivery("POST", URL, provider.sign(body, secret, NOW), body)
        reason = refused(lambda forged=forged: provider.verify(forged, ["app", "verify:vt"], NOW))
        assert reason == Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    ("body", "headers", "secret"),
    [
        (b'{"verification_token":"secret_abcdefgh"}', {}, "secret_abcdefgh"),
        (b'{"verification_token":"secret_known000"}', {}, None),
    ],
)
def test_notion_says_a_token_once(body, headers, secret):
    reply = load("notion").handshake(Delivery("POST", "", headers, body), ["secret_known000"])

    assert (reply.status, reply.body, reply.secret) == (200, b"", secret)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"verification_token":"secret_abcdefgh"}', {"x-notion-signature": "sha256=0"}),
        (b'{"verification_token":"secret_abcdefgh","id":"1","type":"page.created"}', {}),
        (b'{"verification_token":"a b"}', {}),
        (b'{"verification_token":7}', {}),
        (b'["verification_token"]', {}),
        (b"verification_token", {}),
    ],
)
def test_notion_takes_nothing_else_for_a_token(body, headers):
    assert load("notion").handshake(Delivery("POST", "", headers, body), []) is None


@pytest.mark.parametrize(
    ("body", "headers", "answered"),
    [
        (b"webhook_id=7", {}, True),
        (b"webhook_id=7", {"x-wc-webhook-signature": "x"}, False),
        (b"webhook_id=7&a=b", {}, False),
        (b'{"webhook_id":7}', {}, False),
        (b"", {}, False),
    ],
)
def test_woocommerce_answers_pings_only(body, headers, answered):
    reply = load("woocommerce").handshake(Delivery("POST", "", headers, body), [SECRET])

    assert (reply is not None) == answered


@pytest.mark.parametrize(
    ("kind", "signed", "answered"),
    [("diagnostics:ping", False, True), ("diagnostics:ping", True, False), ("repo:push", False, False)],
)
def test_bitbucket_answers_unsigned_tests_of_the_connection_only(kind, signed, answered):
    headers = {"x-event-key": kind, **({"x-hub-signature": "sha256=00"} if signed else {})}

    reply = load("bitbucket_cloud").handshake(Delivery("POST", "", headers, b'{"test":true}'), [SECRET])

    assert (reply is not None) == answered


@pytest.mark.parametrize("events", [b"[]", b"null"])
def test_xero_answers_an_empty_batch_that_is_signed(events):
    provider = load("xero")
    body = b'{"events":%b,"entropy":"x"}' % events
    delivery = Delivery("POST", "", provider.sign(body, SECRET, NOW), body)

    assert provider.handshake(delivery, [SECRET]).body == b""
    assert provider.handshake(delivery, ["other"]) is None
    assert {provider.statuses[refusal] for refusal in (Reason.BAD_SIGNATURE, Reason.MISSING_HEADER)} == {401}


@pytest.mark.parametrize(
    ("name", "delivery"),
    [
        ("front", Delivery("POST", "", {"x-front-challenge": ""}, b"")),
        ("front", Delivery("GET", "", {"x-front-challenge": "c"}, b"")),
        ("nylas", Delivery("POST", f"{URL}challenge=c", {}, b"")),
        ("nylas", Delivery("GET", f"{URL}challenge=%3Cb%0A", {}, b"")),
        ("worldline_connect", Delivery("POST", "", {"x-gcs-webhooks-endpoint-verification": "c"}, b"")),
        (
            "twitch",
            Delivery("POST", "", {"twitch-eventsub-message-type": "webhook_callback_verification"}, b"{}"),
        ),
    ],
)
def test_what_is_no_probe_is_not_answered(name, delivery):
    assert load(name).handshake(delivery, [SECRET]) is None


def test_echoed_text_is_never_taken_for_a_page():
    reply = probe("nylas", "challenge=%3Cscript%3E1%3C%2Fscript%3E")

    assert reply.content_type.startswith("text/plain")
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
