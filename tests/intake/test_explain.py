from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers import Reason
from hookonce.providers.kit.crypto.public_keys import new_key
from hookonce.providers.kit.registry import load
from hookonce.receiver.intake.explain.causes import explain
from hookonce.receiver.intake.explain.checks import Case
from hookonce.receiver.intake.explain.header_shapes import form, words
from hookonce.receiver.source import Source

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BODY = b'{"id":"evt_1","type":"a.b","n":[1,2],"url":"https://x.example/\xc3\xa4"}'
SECRET = "whsec_bm90IGEgcmVhbCBzZWNyZXQgYXQgYWxsIG5v"
URL = "https://in.example/hooks/x"


def sent(name, body=BODY, secret=SECRET, at=NOW, **case):
    provider = load(name)
    said = {"event_id": "e-1", "type": "a.b", "url": URL, "method": "POST"}
    return Case(Source(name, provider, (SECRET,)), provider.delivery(body, secret, at, **said), NOW, **case)


def changed(case, **fields):
    return replace(case, delivery=replace(case.delivery, **fields))


def with_secrets(case, *secrets):
    return replace(case, source=replace(case.source, secrets=secrets))


@pytest.mark.parametrize(
    "name", ["stripe", "github", "shopify", "slack", "gitlab", "svix", "twilio", "mailgun"]
)
def test_genuine_delivery_is_told_genuine_with_every_check_right(name):
    found = explain(sent(name))

    assert (found.reason, found.cause, found.detail) == (None, "", "genuine")
    assert [check for check in found.checks if check.is_right is False] == []


@pytest.mark.parametrize("name", ["stripe", "github", "svix"])
@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (BODY + b"\n", "a line end was added"),
        (
            b'{"id": "evt_1", "type": "a.b", "n": [1, 2], "url": "https://x.example/\\u00e4"}',
            "parsed and written again",
        ),
        (b"\xef\xbb\xbf" + BODY, "a byte order mark"),
        (BODY.decode("latin-1").encode(), "read as latin-1"),
        (BODY + b"x", "another secret, or the body was changed"),
    ],
)
def test_body_that_was_changed_on_its_way_is_told(name, body, cause):
    found = explain(changed(sent(name), body=body))

    assert found.reason is Reason.BAD_SIGNATURE
    assert cause in found.cause


@pytest.mark.parametrize(
    ("secret", "cause"),
    [
        (f'"{SECRET}"', "quotes"),
        (SECRET.removeprefix("whsec_"), "lacks its prefix"),
        (f"STRIPE={SECRET}", "variable's name"),
        ("whsec_other", "another secret"),
    ],
)
def test_secret_that_was_pasted_wrongly_is_told(secret, cause):
    found = explain(with_secrets(sent("stripe"), secret))

    assert cause in found.cause


def test_secret_of_the_rotation_is_told_by_its_slot():
    found = explain(with_secrets(sent("stripe"), "whsec_other", SECRET))

    assert (found.reason, found.slot) == (None, 2)


def test_url_that_a_proxy_changed_is_told():
    case = sent("twilio", b"a=1")

    assert "http, not https" in explain(changed(case, url=URL.replace("https", "http"))).cause.replace(
        "https, not http", "http, not https"
    )


@pytest.mark.parametrize("name", ["stripe", "github"])
def test_delivery_meant_for_another_source_is_told(name):
    others = {"billing": Source("billing", load("stripe"), (SECRET,))}
    delivery = sent("stripe").delivery
    case = Case(Source(name, load(name), ("whsec_this_one_has_another",)), delivery, NOW, others)

    assert explain(case).cause == "it is genuine for source 'billing'"


@pytest.mark.parametrize(
    ("off", "cause"),
    [
        (timedelta(minutes=10), "captured earlier"),
        (timedelta(minutes=-10), "our clock is behind"),
        (timedelta(hours=2), "2 h behind"),
    ],
)
def test_signed_time_that_is_off_is_told(off, cause):
    found = explain(sent("stripe", at=NOW - off))

    assert found.reason is Reason.STALE
    assert cause in found.cause
    assert [check.what for check in found.checks if check.is_right is False] == ["signed time"]


def test_missing_header_is_told_with_those_that_look_like_it():
    case = sent("github")
    headers = {
        "x-hub-signature" if "signature" in name else name: value
        for name, value in case.delivery.headers.items()
    }

    found = explain(changed(case, headers=headers))

    assert found.reason is Reason.MISSING_HEADER
    assert "like a signature look: x-hub-signature" in found.cause
    assert ("header x-hub-signature-256", "missing") in [(check.what, check.found) for check in found.checks]


def test_header_of_another_form_is_told_by_its_form():
    case = sent("github")
    found = explain(
        changed(case, headers={**case.delivery.headers, "x-hub-signature-256": "sha1=" + "ab" * 20})
    )

    check = next(check for check in found.checks if check.what == "header x-hub-signature-256")
    assert (check.expected, check.found, check.is_right) == ("sha256=<64 hex>", "<name>=<40 hex>", False)


def test_beginning_of_a_body_is_explained_without_a_verdict_on_its_signature():
    found = explain(changed(sent("github", is_whole=False), headers={}))

    assert "signature" not in [check.what for check in found.checks]
    assert found.cause.startswith("header ")


@pytest.mark.parametrize(
    "name", ["stripe", "github", "shopify", "slack", "gitlab", "svix", "twilio", "mailgun"]
)
@pytest.mark.parametrize("wrong", ["body", "secret", "time"])
def test_explanation_holds_no_secret_and_no_right_signature(name, wrong):
    case = sent(name)
    right = [value for key, value in case.delivery.headers.items() if key != "content-type"]
    if wrong == "body":
        case = changed(case, body=BODY + b"\n")
    elif wrong == "secret":
        case = with_secrets(sent(name, secret=SECRET[:-1] + "X"), SECRET)
    else:
        case = sent(name, at=NOW - timedelta(days=1))

    said = str(asdict(explain(case)))

    assert SECRET not in said
    assert not [value for value in right if len(value) > 16 and value in said]


@pytest.mark.parametrize(
    ("value", "model", "expected"),
    [
        ("t=1700000000,v1=" + "0f" * 32, "t=1,v1=2", "t=<unix seconds>,v1=<64 hex>"),
        ("t=1700000000123", "t=1", "t=<unix milliseconds>"),
        ("v1,Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4MTIzNDU2Nzg=", "v1,x", "v1,<44 base64>"),
        ("Bearer hunter2", "Bearer x", "Bearer <a word>"),
        ("my secret sauce", "", "<a word> <a word> <a word>"),
        ("0f8fad5b-d9cb-469f-a165-70867728950e", "", "<uuid>"),
    ],
)
def test_form_says_kinds_and_lengths_and_no_values(value, model, expected):
    assert form(value, words(model)) == expected


@pytest.mark.parametrize(("name", "header"), [("discord", "x-signature-ed25519"), ("gong", "authorization")])
def test_delivery_of_a_key_pair_is_told_by_its_form_and_its_key(name, header):
    provider = load(name)
    key, other = (new_key(provider.key_algorithm) for _ in range(2))
    genuine = sent(name, secret=key)
    right, wrong = (explain(with_secrets(genuine, secret)) for secret in (key, other))

    assert (right.reason, wrong.reason) == (None, Reason.BAD_SIGNATURE)
    assert "signs with another key" in wrong.cause
    assert [check.is_right for check in wrong.checks if check.what == f"header {header}"] == [True]
    assert key.split("\n")[1] not in str(asdict(wrong))


def test_tolerance_of_the_source_is_what_is_checked():
    old = NOW - timedelta(hours=1)
    strict = sent("stripe", at=old)
    lax = replace(strict, source=replace(strict.source, tolerance=timedelta(hours=2)))

    assert explain(strict).reason is Reason.STALE
    assert explain(lax).reason is None
    assert [check.what for check in explain(lax).checks if check.is_right is False] == []


def test_genuine_delivery_that_can_not_be_read_is_told_as_the_event_it_becomes():
    found = explain(sent("stripe", b'{"type": 7}'))

    assert found.reason is None
    assert "one event of type unreadable" in found.detail
    assert "provider module can't read it" in found.cause
