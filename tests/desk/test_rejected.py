"""Rejected deliveries: which are listed, and why each was rejected."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.decryption import pack
from hookonce.receiver.ledger.quarantine import Arrival
from hookonce.receiver.ledger.rejected import Sample, add_rejections
from hookonce.receiver.source import Quarantine

BODY = b'{"id": "evt_1", "type": "invoice.paid", "amount": 7}'
KEY = bytes(range(32))
NOW = datetime.now(UTC)


def reject(here, delivery, reason="bad_signature", source="stripe", at=NOW):
    """Note that a delivery was rejected; give its number."""
    kept = (json.dumps(dict(delivery.headers)), delivery.body[:1024])
    rejection = Sample(at, source, reason, "no v1 signature matches", *kept)
    add_rejections(here.connection, [rejection], {(source, reason): 1})
    return here.rows("SELECT max(id) FROM hookonce.rejected")[0][0]


def stripe(body=BODY, signed_with="whsec_of_the_tests"):
    return load("stripe").delivery(body, signed_with, NOW)


def changed(delivery, body):
    return type(delivery)(delivery.method, delivery.url, delivery.headers, body)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ["b", "a"]),
        ({"source": "a"}, ["a"]),
        ({"reason": "stale"}, ["b"]),
        ({"since": "1h"}, ["b"]),
        ({"until": "1h"}, ["a"]),
        ({"limit": 1}, ["b"]),
    ],
)
def test_rejected_deliveries_are_those_of_the_filter(here, asked, expected):
    reject(here, stripe(), source="a", at=NOW - timedelta(days=1))
    reject(here, stripe(), "stale", "b")

    assert [row["source"] for row in here.ask("list_rejected", **asked).json["data"]] == expected


@pytest.mark.parametrize(
    ("delivery", "cause"),
    [
        (stripe(signed_with="whsec_of_another"), "another secret, or the body was changed"),
        (changed(stripe(), BODY + b"\n"), "a line end was added at its end"),
        (changed(stripe(), json.dumps(json.loads(BODY), indent=2).encode()), "parsed and written again"),
        (stripe(), "genuine with the secrets that are configured now"),
    ],
)
def test_rejection_is_explained_check_by_check(here, delivery, cause):
    explained = here.ask("explain_rejected", rejection=reject(here, delivery))

    assert cause in str(explained.json)
    assert "header stripe-signature" in {each["what"] for each in explained.json["checks"]}
    assert "of_the_tests" not in str(explained.json)


def test_delivery_in_quarantine_is_explained_whole(here):
    here.settings = replace(here.settings, keyring=Keyring([KEY]))
    long = b'{"id": "evt_1", "pad": "%s"}' % (b"x" * 5000)
    sent = changed(stripe(long), long + b"\n")
    number = reject(here, sent)
    before = here.ask("explain_rejected", rejection=number).json
    arrival = Arrival("bad_signature", datetime.now(UTC) - NOW, pack(sent))
    quarantine.keep(here.connection, "stripe", Quarantine(), here.settings.keyring, [arrival])

    whole = here.ask("explain_rejected", rejection=number).json

    assert "capture a whole delivery" in str(before)
    assert "a line end was added at its end" in str(whole)


def test_rejection_of_no_source_says_what_is_known(here):
    explained = here.ask("explain_rejected", rejection=reject(here, stripe(), "unknown_source", "")).json

    assert (explained["reason"], explained["checks"]) == ("unknown_source", [])
    assert "hookonce sources list" in explained["advice"]


@pytest.mark.parametrize("action", ["get_rejected", "explain_rejected"])
def test_rejection_that_is_not_kept_is_not_found(here, action):
    assert "rejected delivery 7 is not kept" in here.ask(action, rejection=7).json["detail"]
