"""What is known of a delivery that comes again under another id: all that was signed, however it is written."""

import json
import zlib
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit import Hmac, body_digest, fixed, form_body, header, one_event
from hookonce.providers.kit.conformance.repeats import check_repeats, marks
from hookonce.providers.kit.registry import load, names
from tests.support.captured import captured_as, captured_of
from tests.support.for_each import for_each
from tests.support.senders import NOW, sent
from tests.support.senders_page import OPTIONS, provider_of

CANONICAL = {
    "box",
    "dropbox_sign",
    "gitea_forgejo",
    "lever",
    "mercado_pago",
    "midtrans",
    "paypal",
    "plivo",
    "twilio",
}
"""Senders with unsigned ids whose signature covers something else than the body's bytes."""


def test_senders_that_sign_no_bytes_of_the_body_say_what_they_sign():
    assert {name for name in names() if provider_of(name).signed_message} == CANONICAL


def test_senders_with_unsigned_ids_say_whether_repeats_run_and_why():
    told = {name: provider_of(name) for name in names() if name not in OPTIONS}
    undecided = [name for name, each in told.items() if not (each.id_is_signed or each.body_is_unsigned)]

    assert [name for name in undecided if not (told[name].holds_repeats or told[name].runs_repeats)] == []


def complaints(case):
    try:
        check_repeats(case)
    except AssertionError as error:
        yield str(error)


@pytest.mark.parametrize("name", sorted(CANONICAL - {"box", "mercado_pago", "paypal"}))
def test_contract_catches_a_sender_that_does_not_say_what_it_signs(name):
    changes = {"signed_message": None, "body_is_unsigned": False}
    silent = [
        replace(case, provider=replace(case.provider, **changes))
        for case in captured_of(name)
        if case.is_genuine
    ]

    found = [complaint for case in silent for complaint in complaints(case)]

    assert any("say what is signed" in complaint for complaint in found)


def test_box_marks_a_body_alike_with_and_without_its_escapes():
    provider = load("box")
    escaped = json.dumps({"trigger": "FILE.UPLOADED", "name": "Zoë"}).encode()
    plain = json.dumps({"trigger": "FILE.UPLOADED", "name": "Zoë"}, ensure_ascii=False).encode()
    signed = provider.delivery(escaped, "key", NOW)
    again = replace(signed, body=plain, readings={})
    [event] = provider.events(signed)

    provider.verify(again, ["key"], NOW)

    assert signed.body != again.body
    assert provider.repeat_mark(signed, event) == provider.repeat_mark(again, event)


def with_sum_of(body, wanted):
    """Return JSON of which the CRC-32 is the one that is wanted: of 64 digits each is 0 or 1."""
    start, end = body[:-1] + b',"made":"', b'"}'
    zeros = b"0" * 64
    base = zlib.crc32(start + zeros + end)
    rows = []
    for at in range(64):
        value, used = zlib.crc32(start + zeros[:at] + b"1" + zeros[at + 1 :] + end) ^ base, 1 << at
        for pivot, taken in rows:
            if value ^ pivot < value:
                value, used = value ^ pivot, used ^ taken
        if value:
            rows.append((value, used))
            rows.sort(reverse=True)
    rest, flips = base ^ wanted, 0
    for pivot, taken in rows:
        if rest ^ pivot < rest:
            rest, flips = rest ^ pivot, flips ^ taken
    assert rest == 0
    return start + bytes(48 + (flips >> at & 1) for at in range(64)) + end


def test_paypal_marks_another_body_of_the_same_sum_alike():
    case = next(case for case in captured_of("paypal") if case.is_genuine)
    body = with_sum_of(b'{"id":"WH-forged","event_type":"x"}', zlib.crc32(case.delivery.body))
    forged = replace(case.delivery, body=body, readings={})
    [event], [other] = case.events(case.delivery), case.events(forged)

    assert case.verdict(forged) is None
    assert event.id != other.id
    assert marks(case, case.delivery, event) & marks(case, forged, other)


def test_contract_catches_a_repeat_that_is_known_by_the_bytes_of_a_form():
    scheme = Hmac(header="x-signature", signed="{url}{params}")
    body, url = b"To=1&From=2&Text=a+b", "https://in.example/"
    headers = {**scheme.sign(body, "secret", NOW, url=url), "x-id": "1"}
    events = one_event(id=header("x-id"), type=fixed("t"), read=form_body)
    changes = {"verify": scheme.verify, "events": events, "body_is_unsigned": False, "id_is_signed": False}
    [case, *_] = [case for case in captured_of("github") if case.is_genuine]
    case = replace(
        case,
        provider=replace(case.provider, **changes),
        delivery=Delivery("POST", url, headers, body),
        secret="secret",
        now=NOW,
    )

    check_repeats(replace(case, provider=replace(case.provider, signed_message=scheme.signed_message)))
    by_digest = replace(case, provider=replace(case.provider, events=replace_id(events)))
    with pytest.raises(AssertionError, match="say what is signed"):
        check_repeats(by_digest)


def replace_id(events):
    return one_event(id=body_digest(), type=events.type, read=events.read)


def test_generic_hmac_over_a_form_knows_its_repeats_by_the_form():
    provider = load(
        "hmac",
        options={"header": "x-sig", "signed": "{url}{params}", "id": "header:x-id", "type": "fixed:t"},
    )
    body = b"b=2&a=1"
    [event] = provider.events(replace(posted(body), headers={"x-id": "1", "x-sig": "0" * 64}))
    found = {
        provider.repeat_mark(replace(posted(form), headers={"x-sig": "0" * 64}), event)
        for form in (body, b"a=1&b=2", b"a=1&b=%32", b"a=1&b=2&b=2")
    }

    assert len(found) == 1
    assert not provider.id_is_signed


def posted(body):
    return Delivery("POST", "https://in.example/x?y=1", {}, body)


@pytest.mark.parametrize(
    ("options", "signed"),
    [
        ({"id": "$.id", "signed": "{url}{params}"}, False),
        ({"id": "header:X-Id", "signed": "{header:X-Id}{body}"}, False),
        ({"id": "header:X-Id", "signed": "{url}{header:X-Id}.{body}"}, False),
        ({"id": "header:X-Id", "signed": "{header:X-Id}.{body}"}, True),
    ],
)
def test_generic_hmac_does_not_call_an_id_signed_into_which_others_can_be_shifted(options, signed):
    provider = load("hmac", options={"header": "x-sig", "type": "fixed:t"} | options)

    assert provider.id_is_signed is signed


def test_elements_of_a_batch_are_no_repeats_of_each_other():
    body = b'[{"id":"EZ1","type":"a"},{"id":"EZ2","type":"b"}]'
    provider, delivery = load("twilio"), posted(body)

    first, second = (
        provider.repeat_mark(delivery_of(provider, delivery), event) for event in provider.events(delivery)
    )

    assert first != second


def delivery_of(provider, delivery):
    return provider.delivery(delivery.body, "auth-token-of-tests", NOW, url=delivery.url)


def test_twilio_marks_a_delivery_alike_with_and_without_its_port():
    case = captured_as("twilio/token-and-port")
    [event] = case.events(case.delivery)
    plain = replace(case.delivery, url=case.delivery.url.replace(":8443", "").replace(":443", ""))

    assert case.provider.repeat_mark(case.delivery, event) == case.provider.repeat_mark(plain, event)


def test_midtrans_marks_every_state_of_a_digest_alike():
    provider, delivery = sent(
        "midtrans",
        {
            "order_id": "1111",
            "status_code": "200",
            "gross_amount": "100000.00",
            "transaction_status": "capture",
        },
    )
    forged = replace(delivery, body=delivery.body.replace(b"capture", b"refund"), readings={})
    one, other = (
        {provider.repeat_mark(each, event) for event in provider.events(each)} for each in (delivery, forged)
    )

    assert one == other


def walked(case):
    """The delivery again, as whoever captured it may write it to have another id."""
    delivery = replace(case.delivery, readings={})
    pairs = parse_qsl(delivery.body.decode("latin-1"), keep_blank_values=True, encoding="latin-1")
    if pairs and delivery.body[:1] not in b"{[-":
        yield replace(delivery, body=urlencode(pairs[::-1], encoding="latin-1").encode())
    yield delivery


@for_each(
    lambda: [
        case for name in ("twilio", "gitea_forgejo", "plivo") for case in captured_of(name) if case.is_genuine
    ]
)
def test_event_has_a_mark_that_no_spelling_of_its_body_changes(case):
    events = case.events(case.delivery)
    again = [each for each in walked(case) if case.verdict(each) is None]

    assert again
    for delivery in again:
        found = [marks(case, delivery, event) for event in events]
        assert all(
            mark & marks(case, case.delivery, event) for mark, event in zip(found, events, strict=True)
        )
