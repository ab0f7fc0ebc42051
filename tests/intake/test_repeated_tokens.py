"""A sender that signs a token instead of its body: who has seen one delivery can send another under its token."""

import json
from dataclasses import replace

from tests.support.senders import SIGNING, sent


def test_token_of_mailgun_that_comes_again_with_another_body_is_a_repeat(receiver):
    provider, delivery = sent("mailgun", {"event-data": {"id": "1", "event": "opened"}}, now=receiver.now)
    receiver.add("mails", provider, SIGNING, repeats="hold")
    block = json.loads(delivery.body)["signature"]
    forged = {"event-data": {"id": "2", "event": "failed"}, "signature": block}

    answers = [
        receiver.send("mails", each).json["status"]
        for each in (delivery, delivery, replace(delivery, body=json.dumps(forged).encode()))
    ]

    assert answers == ["accepted", "duplicate", "accepted"]
    statuses = "SELECT event_id, status FROM hookonce.event_states WHERE source = 'mails' ORDER BY id"
    assert receiver.query(statuses) == [("1", "received"), ("2", "held")]
