import json
from dataclasses import replace

from hookonce.providers import Reason
from tests.support.senders import SIGNING, reason_of, sent


def test_mailgun_signature_fits_any_body_and_one_token():
    provider, delivery = sent("mailgun", {"event-data": {"id": "1", "event": "opened"}})
    block = json.loads(delivery.body)["signature"]

    for changed, reason in (
        ({}, None),
        ({"token": "x"}, Reason.BAD_SIGNATURE),
        ({"timestamp": "1"}, Reason.BAD_SIGNATURE),
    ):
        body = json.dumps({"event-data": {"id": "2"}, "signature": {**block, **changed}}).encode()
        assert reason_of(provider, replace(delivery, body=body)) == reason


def test_mailgun_token_that_comes_again_with_another_body_is_a_repeat(receiver):
    provider, delivery = sent("mailgun", {"event-data": {"id": "1", "event": "opened"}}, now=receiver.now)
    receiver.add("mails", provider, SIGNING, repeats="hold")
    block = json.loads(delivery.body)["signature"]
    forged = {"event-data": {"id": "2", "event": "failed"}, "signature": block}

    answers = [
        receiver.send("mails", each).json["status"]
        for each in (delivery, delivery, replace(delivery, body=json.dumps(forged).encode()))
    ]

    assert answers == ["accepted", "duplicate", "accepted"]
    statuses = "SELECT event_id, status FROM hookonce.events WHERE source = 'mails' ORDER BY id"
    assert receiver.query(statuses) == [("1", "received"), ("2", "held")]
