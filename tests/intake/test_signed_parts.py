"""A delivery whose parts are signed one by one: what does not verify is refused, and nothing beside it."""

import contextlib
import json

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.intake.reverification import reverify
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.source import Quarantine, Source
from tests.support.in_process import Receiver

ADYEN = load("adyen")
KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
OTHER = KEY[::-1]
KEYRING = Keyring([b"k" * 32])
NAMES = ("a", "b", "c")
IDS = {f"CAPTURE:{name}" for name in NAMES}


def batch(at):
    items = [
        {
            "NotificationRequestItem": {
                "pspReference": name,
                "merchantAccountCode": "Shop",
                "merchantReference": "order 7",
                "amount": {"value": 1130, "currency": "EUR"},
                "eventCode": "CAPTURE",
                "success": "true",
            }
        }
        for name in NAMES
    ]
    return ADYEN.delivery(json.dumps({"live": "false", "notificationItems": items}).encode(), KEY, at)


def changed(delivery, change, *places):
    document = json.loads(delivery.body)
    for place in places:
        change(document["notificationItems"][place]["NotificationRequestItem"])
    return type(delivery)("POST", "", delivery.headers, json.dumps(document).encode())


def stripped(item):
    del item["additionalData"]


def forged(item):
    item["amount"]["value"] = 1


def malformed(item):
    item["additionalData"]["hmacSignature"] = "?"


def shifted(item):
    item["originalReference"] = "x:y"


WRONGS = (stripped, forged, malformed, shifted)
KEPT = (forged, shifted)
"""Those with a signature, or with parts of one that can't be joined: a quarantine keeps no other."""


@pytest.fixture
def receiver(database_url, redis_url):
    with contextlib.closing(Receiver(database_url, redis_url, keyring=KEYRING)) as running:
        running.add("adyen", ADYEN, KEY, quarantine=Quarantine(reasons=("bad_signature", "bad_body")))
        yield running


def stored(receiver):
    return {row[0] for row in receiver.query("SELECT event_id FROM hookonce.events")}


@pytest.mark.parametrize("wrong", WRONGS)
@pytest.mark.parametrize("place", range(3))
def test_part_without_a_right_signature_is_refused_and_the_others_go_on(receiver, wrong, place):
    answer = receiver.send("adyen", changed(batch(receiver.now), wrong, place))
    receiver.close()

    assert answer.status_code == 200
    assert stored(receiver) == IDS - {f"CAPTURE:{NAMES[place]}"}
    assert receiver.query("SELECT sum(count) FROM hookonce.rejections") == [(1,)]
    assert receiver.query("SELECT count(*) FROM hookonce.quarantine") == [(int(wrong in KEPT),)]


@pytest.mark.parametrize("wrong", WRONGS)
def test_delivery_of_which_nothing_verifies_is_refused_as_one(receiver, wrong):
    answer = receiver.send("adyen", changed(batch(receiver.now), wrong, 0, 1, 2))
    receiver.close()

    assert answer.status_code == 401
    assert stored(receiver) == set()
    assert receiver.query("SELECT sum(count) FROM hookonce.rejections") == [(1,)]


def test_delivery_of_which_all_verifies_is_taken_in_whole(receiver):
    assert receiver.send("adyen", batch(receiver.now)).status_code == 200
    assert stored(receiver) == IDS


def test_part_in_quarantine_is_taken_in_once_its_key_is_there(receiver):
    ours, theirs = (
        batch(receiver.now),
        json.loads(ADYEN.delivery(batch(receiver.now).body, OTHER, receiver.now).body),
    )
    document = json.loads(ours.body)
    document["notificationItems"][1] = theirs["notificationItems"][1]
    receiver.send("adyen", type(ours)("POST", "", ours.headers, json.dumps(document).encode()))
    receiver.close()

    with connections.connect(receiver.settings.database_url) as connection:
        source = Source("adyen", ADYEN, (KEY, OTHER), quarantine=Quarantine())
        *_, done = reverify(receiver.settings, connection, source, receiver.now.replace(year=2000), "ann")

    assert (done.accepted, done.refused) == (1, {})
    assert stored(receiver) == IDS
    assert receiver.query("SELECT count(*) FROM hookonce.quarantine") == [(0,)]
