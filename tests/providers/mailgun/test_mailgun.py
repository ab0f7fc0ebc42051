import json
from dataclasses import replace

from hookonce.providers import Reason
from tests.support.senders import reason_of, sent


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
