import os
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import pytest

from hookonce.receiver.encryption import (
    OFF,
    KeyMissing,
    Keyring,
    quarantine_context,
    step_context,
    traceback_context,
)
from hookonce.receiver.ledger.maintenance import key_rotation, partitions
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.queries.rejected import rejected_deliveries
from hookonce.receiver.ledger.rejected import Sample, add_rejections
from hookonce.receiver.ledger.store import store
from hookonce.receiver.ledger.traceback_frames import Raised, Traceback
from hookonce.receiver.privacy.at_rest import sealed
from tests.support.new_event import new_event
from tests.support.rewording import reword

OLD, NEW = os.urandom(32), os.urandom(32)
OLD_RING, NEW_RING = Keyring([OLD]), Keyring([NEW, OLD])
BROKEN = Traceback((Raised("broken"),)).as_json
NOW = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def connection(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def fill(connection, keyring=OLD_RING):
    """Store two events (one of them twice, with another body), a failure, a refused delivery, and one in quarantine."""
    for event_id, body in (("evt_1", b"one"), ("evt_2", b"two"), ("evt_1", b"other")):
        store(connection, [sealed(new_event(event_id, body), keyring)])
    trace, key = keyring.encrypt(BROKEN, traceback_context(1, "credit", 1, 2))
    connection.execute(
        "INSERT INTO hookonce.failures (event, handler, cycle, attempt, error, traceback, key_id) "
        "VALUES (1, 'credit', 1, 2, '', %s, %s), (1, 'credit', 1, 3, '', NULL, NULL)",
        [trace, key],
    )
    add_rejections(connection, [Sample(NOW, "stripe", "stale", "", "{}", b"refused")], {}, keyring)
    text, key = OLD_RING.encrypt(b"kept", quarantine_context("stripe", "stale", NOW))
    connection.execute(
        "INSERT INTO hookonce.quarantine (source, reason, arrived_at, key_id, delivery) VALUES (%s, %s, %s, %s, %s)",
        ["stripe", "stale", NOW, key, text],
    )


class Slow(Keyring):
    """A keyring during whose first opening, or that of a certain text, something else happens."""

    def __init__(self, happens, during=None):
        super().__init__([NEW, OLD])
        self._happens = [happens]
        self._during = during

    def open(self, *arguments):
        opened = super().open(*arguments)
        if self._happens and self._during in {None, opened}:
            self._happens.pop()()
        return opened


def rotate(connection, keyring=NEW_RING):
    *_, done = key_rotation.rotate(connection, keyring, "ann")
    return done


def readable(connection, keyring):
    found = [event_details.detail(connection, number, keyring).with_content() for number in (1, 2)]
    others = [other.octets for other in found[0].conflicts]
    broken = [failure.traceback.strip().encode() for found_ in found for failure in found_.failures[:1]]
    refused = [row.with_content().body_prefix for row in rejected_deliveries(connection, keyring, 9)]
    ((at, key, text),) = connection.execute(
        "SELECT arrived_at, key_id, delivery FROM hookonce.quarantine"
    ).fetchall()
    kept = keyring.open(text, key, quarantine_context("stripe", "stale", at))
    return [*(each.body.body for each in found), *others, *broken, *refused, kept]


@pytest.mark.parametrize("before", [OLD_RING, OFF], ids=["old key", "in the clear"])
def test_reseal_brings_everything_under_the_first_key(connection, before):
    fill(connection, before)

    done = rotate(connection)

    assert (done.total, done.sealed, done.left) == (6, 6, {})
    assert readable(connection, Keyring([NEW])) == [b"one", b"two", b"other", b"broken", b"refused", b"kept"]
    assert key_rotation.keys_in_use(connection) == {NEW_RING.first}


def test_reseal_goes_on_where_it_was_stopped(connection, monkeypatch):
    monkeypatch.setattr(key_rotation, "ROTATION_BATCH", 1)
    fill(connection)

    steps = key_rotation.rotate(connection, NEW_RING, "ann")
    next(steps)
    assert next(steps).sealed == 1
    steps.close()

    assert rotate(connection).sealed == 5
    assert rotate(connection).total == 0


def test_reseal_takes_heavy_rows_one_at_a_time(connection, monkeypatch):
    monkeypatch.setattr(key_rotation, "ROTATION_BATCH_BYTES", 1)
    fill(connection)

    steps = [done.sealed for done in key_rotation.rotate(connection, NEW_RING, "ann")]

    assert len(steps) == 7
    assert steps[-1] == 6


def test_reseal_makes_digests_only_of_rows_that_it_takes(connection, monkeypatch):
    monkeypatch.setattr(key_rotation, "ROTATION_BATCH_BYTES", 1)
    reword(monkeypatch, key_rotation, ("sha256(", "pg_temp.digest("))
    connection.execute(
        "CREATE TEMP SEQUENCE digests; CREATE FUNCTION pg_temp.digest(bytea) RETURNS bytea LANGUAGE plpgsql AS "
        "'BEGIN PERFORM nextval(''digests''); RETURN sha256($1); END'"
    )
    fill(connection)

    sealed = rotate(connection).sealed

    assert connection.execute("SELECT last_value FROM digests").fetchone() == (2 * sealed,)


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("ValueError: no customer 4711 (shop/pay.py:12)", "ValueError (shop/pay.py:12)"),
        ("GiveUp: no customer (account 4711:12)", "GiveUp"),
        ("GiveUp: no customer (4711:12)", "GiveUp"),
    ],
)
def test_reseal_keeps_the_class_and_the_place_of_an_error_alone(connection, error, kept):
    fill(connection, OFF)
    connection.execute("UPDATE hookonce.failures SET error = %s", [error])

    rotate(connection)

    found = connection.execute("SELECT error FROM hookonce.failures WHERE traceback IS NOT NULL").fetchall()
    assert found == [(kept,)]


def test_reseal_leaves_and_counts_what_it_can_not_open(connection):
    fill(connection)

    done = rotate(connection, Keyring([NEW]))

    assert (done.sealed, done.left) == (0, {OLD_RING.first: 6})
    assert readable(connection, OLD_RING) == [b"one", b"two", b"other", b"broken", b"refused", b"kept"]


def test_reseal_leaves_a_row_that_was_tampered_with(connection):
    fill(connection)
    connection.execute("UPDATE hookonce.bodies SET body = set_byte(body, 15, 255 - get_byte(body, 15))")

    done = rotate(connection)

    assert (done.sealed, done.left) == (4, {OLD_RING.first: 2})


def test_reseal_passes_over_days_that_are_dropped_meanwhile(connection):
    fill(connection)
    steps = key_rotation.rotate(connection, NEW_RING, "bob")
    next(steps)

    for name in partitions.days(connection).values():
        connection.execute(f"DROP TABLE hookonce.{name}")

    assert [done.sealed for done in steps][-1] == 4


def test_reseal_leaves_a_row_that_another_rotation_has_changed(connection):
    fill(connection)
    steps = key_rotation.rotate(connection, Slow(lambda: rotate(connection)), "bob")

    assert [done.sealed for done in steps][-1] == 0
    assert readable(connection, Keyring([NEW])) == [b"one", b"two", b"other", b"broken", b"refused", b"kept"]


def test_reseal_leaves_a_step_that_was_forgotten_and_done_anew_meanwhile(connection):
    fill(connection)
    step = (1, "credit", "charge")
    connection.execute(
        "INSERT INTO hookonce.steps (event, handler, name, state, owner) VALUES (%s, %s, %s, 'in_progress', %s)",
        [*step, uuid4()],
    )

    def is_done(result):
        text, key = OLD_RING.encrypt(result, step_context(*step))
        connection.execute(
            "UPDATE hookonce.steps SET state = 'completed', result = %s, key_id = %s", [text, key]
        )

    is_done(b"first")

    list(key_rotation.rotate(connection, Slow(lambda: is_done(b"second"), b"first"), "bob"))

    text, key = connection.execute("SELECT result, key_id FROM hookonce.steps").fetchone()
    assert OLD_RING.open(text, key, step_context(*step)) == b"second"


def test_reseal_is_audited_when_it_begins_and_when_it_ends(connection):
    fill(connection)

    rotate(connection)

    rows = connection.execute(
        "SELECT who, action, subject, detail FROM hookonce.audit ORDER BY id"
    ).fetchall()
    subject = f"key {NEW_RING.first}"
    assert rows == [
        ("ann", "rotate keys", subject, {"begun": True, "rows": 6}),
        ("ann", "rotate keys", subject, {"begun": False, "sealed": 6, "left": {}}),
    ]


def test_reseal_begins_nothing_without_the_first_key(connection):
    fill(connection)

    with pytest.raises(KeyMissing):
        rotate(connection, Keyring([None, OLD]))

    assert key_rotation.used(connection)["bodies"] == {OLD_RING.first: 2}
