from dataclasses import replace

import pytest

from hookonce.providers import Delivery, Reason
from hookonce.providers.kit.conformance.cases import refusal
from hookonce.providers.kit.registry import load
from tests.support.senders import NOW

PARTNER = {"header": "X-Sig", "id": "$.id", "type": "$.type"}


@pytest.mark.parametrize(
    ("options", "mistakes"),
    [
        ({}, ["header is required", "id is required", "type is required"]),
        (PARTNER | {"heder": "x"}, ["'heder' is not an option, did you mean 'header'?"]),
        (PARTNER | {"hash": "md4"}, ["hash is 'md4', expected one of sha256, sha1, sha512, md5"]),
        (PARTNER | {"header": 5}, ["header is 5, expected a header's name or a list of names"]),
        (PARTNER | {"header": ["X-A", ""]}, ["expected a header's name or a list of names"]),
        (PARTNER | {"query": "sig", "signed": "{url}{body}"}, ["query puts the signature into the URL"]),
        (PARTNER | {"encoding": 1, "prefix": 2}, ["encoding is 1", "prefix is 2, expected text"]),
        (PARTNER | {"signed": "{bdy}"}, ["signed leaves out the body", "'{bdy}' is not something that is signed"]),
        (PARTNER | {"timestamp": "X-T"}, ["a signed time needs a timestamp and a template with {timestamp}"]),
        (PARTNER | {"timestamp": 5}, ["timestamp is 5, expected a header's name or a table"]),
        (PARTNER | {"timestamp": {"unit": "m", "tolerance": 0}}, ["unit is 'm'", "tolerance is 0", "header or key"]),
        (PARTNER | {"id": "id"}, ["id is 'id', expected '$.path'"]),
        (PARTNER | {"id": "$.a[*]"}, ["names many places"]),
        (PARTNER | {"type": "fingerprint"}, ["type is 'fingerprint'"]),
        (PARTNER | {"volatile": "$.a"}, ["volatile is '$.a', expected a list"]),
        (PARTNER | {"volatile": ["a"]}, ["'a' is not a path"]),
    ],
)  # fmt: skip
def test_hmac_lists_every_mistake_in_its_options(options, mistakes):
    with pytest.raises(ValueError, match="hmac: ") as wrong:
        load("hmac", options=options)

    assert [mistake for mistake in mistakes if mistake not in str(wrong.value)] == []


@pytest.mark.parametrize(
    ("options", "signed"),
    [
        ({}, True),
        ({"id": "header:X-Id"}, False),
        ({"id": "header:X-Id", "signed": "{header:X-Id}.{body}"}, True),
        ({"id": "query:id"}, False),
        ({"id": "fingerprint"}, True),
    ],
)
def test_hmac_knows_whether_the_id_is_signed(options, signed):
    assert load("hmac", options=PARTNER | options).id_is_signed == signed


def signed_at(place):
    body = b'{"id":"1","type":"a"}'
    provider = load("hmac", options=PARTNER | {"header": "X-Sig"})
    mac = provider.sign(body, "s3cret", NOW)["x-sig"]
    headers = {place: mac} if place.startswith("x-") else {}
    return Delivery("POST", f"https://h.example/hooks/a?sig={mac}" if place == "query" else "", headers, body)


@pytest.mark.parametrize(
    ("options", "place", "reason"),
    [
        ({"header": ["X-A", "X-B"]}, "x-a", None),
        ({"header": ["X-A", "X-B"]}, "x-b", None),
        ({"header": ["X-A", "X-B"]}, "x-c", Reason.MISSING_HEADER),
        ({"query": "sig"}, "x-sig", None),
        ({"query": "sig"}, "query", None),
        ({"query": "other"}, "query", Reason.MISSING_HEADER),
    ],
)
def test_hmac_looks_for_the_signature_in_each_of_its_places(options, place, reason):
    provider = load("hmac", options=PARTNER | options)
    delivery = signed_at(place)

    assert refusal(lambda: provider.verify(delivery, ["s3cret"], NOW)) == reason


def test_hmac_trusts_a_header_that_was_sent_before_the_query():
    provider = load("hmac", options=PARTNER | {"query": "sig"})
    delivery = replace(signed_at("query"), headers={"x-sig": "0" * 64})

    assert refusal(lambda: provider.verify(delivery, ["s3cret"], NOW)) == Reason.BAD_SIGNATURE


@pytest.mark.parametrize("place", ["fixed:one", "header:Content-Type", "header:user-agent"])
def test_hmac_takes_no_id_that_all_events_have(place):
    with pytest.raises(ValueError, match=f"id is '{place}', .* write id = \"fingerprint\""):
        load("hmac", options=PARTNER | {"id": place})

    assert load("hmac", options=PARTNER | {"id": place, "period": 60}).id_period
    assert load("hmac", options=PARTNER | {"type": place})


def test_hmac_without_an_id_proposes_the_fingerprint_and_no_fixed_text():
    with pytest.raises(
        ValueError, match=r"id is required, expected .* 'query:name' or 'fingerprint'"
    ) as wrong:
        load("hmac", options={"header": "X-Sig", "type": "$.type"})

    assert "fixed" not in str(wrong.value)
