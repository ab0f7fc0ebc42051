"""Each source may have a horizon of its own, for ever among them: an id is known for as long, and no shorter."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import retention
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.rejected import Sample, add_rejections
from hookonce.receiver.ledger.store import Verdict, store
from hookonce.receiver.source import FOREVER
from tests.support.new_event import new_event
from tests.support.outcomes import end_events
from tests.support.rewording import reword

DAY = timedelta(days=1)
USUAL = Retention(90 * DAY, 30 * DAY, 7 * DAY, 365 * DAY)
OWN = USUAL._replace(own={"bank": FOREVER, "chat": 5 * DAY, "books": 400 * DAY})
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
AGES = (1, 10, 100, 1000)


@pytest.fixture
def ledger(database_url):
    """A ledger with an event of each source that is so many days old, oldest first, done."""
    with connections.connect(database_url) as connection:
        for age in sorted(AGES, reverse=True):
            store(
                connection,
                [new_event(f"evt_{age}", source=name) for name in ("bank", "books", "chat", "stripe")],
            )
            connection.execute(
                "UPDATE hookonce.events SET received_at = now() - %s WHERE event_id = %s",
                [age * DAY, f"evt_{age}"],
            )
        end_events(connection, "done")
        yield connection


def prune(connection, horizons, begin=0):
    done = RetentionPass(horizons, size=3, begin=begin)
    list(done.steps(connection))
    return done


def left(connection):
    found = {}
    for source, event_id in connection.execute(
        "SELECT source, event_id FROM hookonce.event_states ORDER BY id DESC"
    ):
        found.setdefault(source, []).append(int(event_id.removeprefix("evt_")))
    return found


def test_each_source_has_its_own_horizon(ledger):
    prune(ledger, OWN)

    assert left(ledger) == {"bank": [1, 10, 100, 1000], "books": [1, 10, 100], "chat": [1], "stripe": [1, 10]}


def test_without_any_all_have_the_same(ledger):
    prune(ledger, USUAL)

    assert left(ledger) == {name: [1, 10] for name in ("bank", "books", "chat", "stripe")}


def test_id_that_is_kept_for_ever_is_a_duplicate_for_ever(ledger):
    prune(ledger, OWN)

    again = store(ledger, [new_event("evt_1000", source=name) for name in ("bank", "stripe")])

    assert {source: row.verdict for (source, _), row in again.items()} == {
        "bank": Verdict.DUPLICATE,
        "stripe": Verdict.ACCEPTED,
    }


def test_pass_that_fails_at_arrivals_has_done_all_else(database_url):
    with connections.connect(database_url) as connection, connections.connect(database_url) as other:
        add_rejections(connection, [Sample(LONG_AGO, "stripe", "stale", "", "{}", b"")], {}, OFF)
        connection.execute("SET lock_timeout = '50ms'")

        with other.transaction():
            other.execute("LOCK TABLE hookonce.arrivals")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                prune(connection, USUAL)

        assert connection.execute("SELECT count(*) FROM hookonce.rejected").fetchone() == (0,)


def test_next_pass_begins_after_what_is_kept_for_ever(ledger):
    ledger.execute(
        "DELETE FROM hookonce.events WHERE source <> 'bank' AND event_id IN ('evt_1000', 'evt_100')"
    )
    ids = [row[0] for row in ledger.execute("SELECT id FROM hookonce.event_states ORDER BY id")]

    first = prune(ledger, OWN)
    second = prune(ledger, OWN, first.begin)

    assert first.begin in ids[:3]
    assert second.begin >= first.begin
    assert left(ledger) == {"bank": [1, 10, 100, 1000], "books": [1, 10], "chat": [1], "stripe": [1, 10]}


def forgets_own_horizons(patch):
    reword(patch, retention, ("coalesce(h.before, %(before)s)", "%(before)s"))


def walks_only_to_the_usual_horizon(patch):
    patch.setattr(retention, "max", lambda values: values[0], raising=False)


@pytest.mark.parametrize(
    "plant", [forgets_own_horizons, walks_only_to_the_usual_horizon], ids=lambda plant: plant.__name__
)
def test_planted_mistake_is_caught(ledger, plant):
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)

        with pytest.raises(AssertionError):
            test_each_source_has_its_own_horizon(ledger)
