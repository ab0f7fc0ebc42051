import json
from dataclasses import replace

import pytest

from hookonce.providers import Reason
from hookonce.providers.kit.registry import load
from tests.support.senders import ids_of, reason_of, sent

PAID = {
    "order_id": "1111",
    "status_code": "200",
    "gross_amount": "100000.00",
    "transaction_id": "t-1",
    "transaction_status": "settlement",
}


@pytest.mark.parametrize("name", ["order_id", "status_code", "gross_amount"])
def test_midtrans_hashes_order_status_code_and_amount(name):
    provider, delivery = sent("midtrans", PAID)
    changed = {**json.loads(delivery.body), name: "201"}

    assert (
        reason_of(provider, replace(delivery, body=json.dumps(changed).encode(), readings={}))
        == Reason.BAD_SIGNATURE
    )


def test_midtrans_says_that_its_body_is_not_signed():
    provider, delivery = sent("midtrans", PAID)
    changed = {**json.loads(delivery.body), "transaction_status": "capture"}

    assert reason_of(provider, replace(delivery, body=json.dumps(changed).encode(), readings={})) is None
    assert provider.body_is_unsigned
    assert not provider.id_is_signed


def test_midtrans_refunds_in_parts_are_events_of_their_own():
    refunds = [
        {**PAID, "transaction_status": "partial_refund", "refunds": [{"refund_key": key}]}
        for key in ("a", "b")
    ]

    assert ids_of("midtrans", refunds[0]) != ids_of("midtrans", refunds[1])


@pytest.mark.parametrize(
    "junk", [b"[]", b"{}", b'{"signature_key": 1}', b'{"signature_key": "x", "order_id": 1}']
)
def test_midtrans_junk_is_refused(junk):
    provider, delivery = sent("midtrans", PAID)

    assert reason_of(provider, replace(delivery, body=junk, readings={})) in {
        Reason.MISSING_HEADER,
        Reason.BAD_HEADER,
    }
    assert load("midtrans").max_body == 1 << 20
