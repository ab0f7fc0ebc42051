import json
from urllib.parse import urlencode

import pytest

from hookonce.providers import Delivery, Reason
from hookonce.providers.kit.registry import load
from tests.support.senders import SIGNING, reason_of, sent


def test_ko_fi_puts_its_token_into_the_data_of_the_form():
    provider, delivery = sent("ko_fi", {"message_id": "m-1", "type": "Donation"})
    [event] = provider.events(delivery)

    assert (event.id, event.type) == ("m-1", "Donation")
    assert reason_of(provider, delivery) is None
    assert reason_of(provider, delivery, "another") == Reason.BAD_SIGNATURE


@pytest.mark.parametrize("said", ["[]", "1", '{"verification_token": 1}', "{"])
def test_ko_fi_data_without_a_token_is_bad(said):
    body = urlencode({"data": said}).encode()

    assert reason_of(load("ko_fi"), Delivery("POST", "", {}, body)) == Reason.BAD_BODY


def test_ko_fi_token_beside_the_data_proves_nothing():
    body = urlencode({"data": json.dumps({"message_id": "m-1"}), "verification_token": SIGNING}).encode()

    assert reason_of(load("ko_fi"), Delivery("POST", "", {}, body)) == Reason.BAD_BODY
