from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest

from hookonce.providers import Reason
from hookonce.providers.kit.conformance import cases
from tests.support.senders import reason_of

[CASE] = [case for case in cases(Path(__file__).parent) if case.name.endswith("payment-succeeded")]
FIELDS = parse_qsl(CASE.delivery.body.decode(), keep_blank_values=True)


def reason(fields):
    body = urlencode(fields).encode()
    return reason_of(CASE.provider, replace(CASE.delivery, body=body, readings={}), CASE.secret)


def test_paddle_classic_order_of_the_fields_does_not_matter():
    assert reason(FIELDS[::-1]) is None


@pytest.mark.parametrize(
    "fields",
    [
        [*FIELDS, ("extra", "1")],
        FIELDS[1:],
        [(name, "9999" if name == "sale_gross" else value) for name, value in FIELDS],
        [(name + "x" if name == "user_id" else name, value) for name, value in FIELDS],
    ],
    ids=["added", "missing", "changed", "renamed"],
)
def test_paddle_classic_signs_every_field(fields):
    assert reason(fields) == Reason.BAD_SIGNATURE


def test_paddle_classic_text_that_looks_like_php_is_no_way_out_of_its_field():
    shifted = [(name, value.replace("Ünal", 'x";s:7:"user_id";s:1:"3')) for name, value in FIELDS]

    assert reason([pair for pair in shifted if pair[0] != "user_id"]) == Reason.BAD_SIGNATURE


def test_paddle_classic_event_does_not_hold_the_signature():
    [event] = CASE.events(CASE.delivery)

    assert "p_signature" not in event.data
    assert event.data["customer_name"] == "Zoë Ünal"
