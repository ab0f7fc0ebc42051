import json
from dataclasses import replace

import pytest

from hookonce.providers import Reason
from tests.support.senders import ids_of, reason_of, sent

BODY = {
    "event": "candidateHired",
    "triggeredAt": 1431458021951,
    "data": {"candidateId": "c-1"},
    "token": "t" * 48,
}


@pytest.mark.parametrize(("name", "value"), [("token", "u" * 48), ("triggeredAt", 1431458021952)])
def test_lever_signs_token_and_time(name, value):
    provider, delivery = sent("lever", BODY)
    changed = json.dumps({**json.loads(delivery.body), name: value}).encode()

    assert reason_of(provider, delivery) is None
    assert reason_of(provider, replace(delivery, body=changed, readings={})) == Reason.BAD_SIGNATURE


def test_lever_attempt_with_another_token_is_the_same_event():
    again = {**BODY, "token": "u" * 48, "signature": "0" * 64}

    assert ids_of("lever", again) == ids_of("lever", BODY)
    assert ids_of("lever", {**again, "triggeredAt": 1}) != ids_of("lever", BODY)


@pytest.mark.parametrize("change", [{"token": 1}, {"triggeredAt": True}, {"triggeredAt": "1431458021951"}])
def test_lever_body_without_what_is_signed_is_bad(change):
    provider, delivery = sent("lever", BODY)
    body = json.dumps({**json.loads(delivery.body), **change}).encode()

    assert reason_of(provider, replace(delivery, body=body, readings={})) == Reason.BAD_BODY
