"""Bodies under encryption: written sealed by the receiver, opened for workers and operators, and only for them."""

import contextlib
import os
from datetime import UTC, datetime

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.encryption import KeyMissing, Keyring, Tampered
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries import event_details, rejected
from hookonce.receiver.ledger.runs import leases
from tests.support.in_process import Receiver

KEY = os.urandom(32)
SECRET = "whsec_of_the_tests"
STRIPE = load("stripe", ())


@pytest.fixture
def receiver(database_url, redis_url):
    with contextlib.closing(Receiver(database_url, redis_url, keyring=Keyring([KEY]))) as running:
        running.add("stripe", STRIPE, SECRET)
        yield running


def send(receiver, body, secret=SECRET):
    now = datetime.now(UTC)
    return receiver.send("stripe", STRIPE.delivery(body, secret, now, url="/hooks/stripe"))


def body_of(marker, event_id="evt_1"):
    return b'{"id": "%s", "type": "invoice.paid", "card": "%s"}' % (event_id.encode(), marker)


def detail(receiver, keyring):
    with connections.connect(receiver.database_url) as connection:
        return event_details.detail(connection, 1, keyring).with_content()


def dumped(receiver):
    tables = ("bodies", "conflicts", "rejected", "events")
    return "".join(str(receiver.query(f"TABLE hookonce.{table}")) for table in tables)


def test_body_is_sealed_in_the_ledger_and_opens_for_the_desk(receiver):
    assert send(receiver, body_of(b"visa")).status_code == 200

    assert "visa" not in dumped(receiver)
    assert detail(receiver, Keyring([KEY])).body.body == body_of(b"visa")


def test_other_body_of_a_conflict_is_sealed_and_opens(receiver):
    send(receiver, body_of(b"visa"))
    send(receiver, body_of(b"amex"))

    assert "amex" not in dumped(receiver)
    (other,) = detail(receiver, Keyring([KEY])).conflicts
    assert (other.octets, other.unreadable) == (body_of(b"amex"), None)


def test_bodies_of_one_event_can_not_be_swapped_in_the_database(receiver):
    send(receiver, body_of(b"visa"))
    send(receiver, body_of(b"amex"))

    with connections.connect(receiver.database_url) as connection:
        connection.execute("UPDATE hookonce.bodies SET body = (SELECT body FROM hookonce.conflicts)")

    with pytest.raises(Tampered):
        _ = detail(receiver, Keyring([KEY])).body.body


def test_beginning_of_a_refused_body_is_sealed_and_opens(receiver):
    assert send(receiver, body_of(b"visa"), "whsec_another").status_code == 401
    receiver.close()

    assert "visa" not in dumped(receiver)
    with connections.connect(receiver.database_url) as connection:
        (row,) = rejected.rejected_deliveries(connection, Keyring([KEY]), 9)
        (hidden,) = rejected.rejected_deliveries(connection, Keyring(), 9)
    assert row.with_content().body_prefix == body_of(b"visa")
    assert hidden.body_prefix == b""
    assert "add that key to encryption_keys" in hidden.with_content().unreadable


def test_event_is_shown_without_its_body_where_the_key_is_missing(receiver):
    send(receiver, body_of(b"visa"))

    found = detail(receiver, Keyring())

    assert found.event.event_id == "evt_1"
    assert "is not configured here" in found.body.unreadable
    with pytest.raises(KeyMissing):
        _ = found.body.body


def test_duplicate_is_known_although_it_is_sealed_anew(receiver):
    send(receiver, body_of(b"visa"))

    assert send(receiver, body_of(b"visa")).json["status"] == "duplicate"
    assert detail(receiver, Keyring([KEY])).conflicts == []


def test_plain_bodies_from_before_stay_readable(receiver):
    send(receiver, body_of(b"visa"))
    with connections.connect(receiver.database_url) as connection:
        connection.execute("UPDATE hookonce.bodies SET body = %s, key_id = NULL", [body_of(b"visa")])

    assert detail(receiver, Keyring([KEY])).body.body == body_of(b"visa")


def test_heavy_body_is_loaded_with_the_key_it_has_then(receiver):
    send(receiver, body_of(b"4" * 300_000))

    with connections.connect(receiver.database_url) as connection:
        event = event_details.detail(connection, 1, Keyring()).event
        text, key = leases.load_body(connection, event)

    assert key == Keyring([KEY]).first
    assert b"4" * 20 not in text
