"""Runs that share a flush: told of only once they are durable, done once whatever a crash of the server takes away."""

import logging
import threading
from datetime import timedelta
from types import SimpleNamespace

import psycopg
import pytest
from sqlalchemy import text

from hookonce.jobs.attempts import train as trains
from hookonce.jobs.handlers import Registry
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.database import connections, plans, round_trip
from hookonce.receiver.ledger.runs import ends
from tests.support.crashing import connected, crash, crashing, server
from tests.support.inbox import effect, inbox
from tests.support.waiting import ENOUGH, DeadlineMissed, until

__all__ = ["crashing", "inbox", "server"]

QUICK = 12
COMMITS = "SELECT count(*) FROM hookonce.runs WHERE status = 'done'"


@pytest.fixture(autouse=True)
def all_quick(monkeypatch):
    """Have each handler count as quick, however busy the machine is."""
    monkeypatch.setattr(Registry, "is_quick", lambda *_: True)


@pytest.fixture
def held(monkeypatch):
    """Cleared, it keeps flushes waiting; they go on in the end."""
    may_flush = threading.Event()
    may_flush.set()
    right = round_trip.flush

    def flush(connection):
        may_flush.wait(60)
        right(connection)

    monkeypatch.setattr(round_trip, "flush", flush)
    yield may_flush
    may_flush.set()


@pytest.fixture
def quick(inbox):
    """The inbox with a handler that is known to be quick, and nothing due."""
    inbox.on(effect)
    inbox.deliver("first")
    inbox.work()
    until(lambda: inbox.drains[0].executor.shared.train.ticket() is not None)
    return inbox


def names(count=QUICK):
    return [f"evt_{number:02}" for number in range(count)]


def told(caplog):
    return [record.event for record in caplog.records if record.getMessage() == "run"]


def test_quick_runs_are_told_of_after_their_flush(quick, held, caplog):
    story(quick, held, caplog, ENOUGH)


def story(quick, held, caplog, seconds):
    caplog.set_level(logging.INFO)
    held.clear()
    events = quick.deliver(*names())

    quick.work()

    assert quick.rows(COMMITS) == [(QUICK + 1,)]
    assert told(caplog) == events[-1:], "the last has waited for the disk by itself"
    held.set()
    until(lambda: sorted(told(caplog)), events, seconds=seconds)


def tells_before_the_flush(patch):
    right = trains.Train.board

    def board(self, attempt):
        attempt.tell_flushed(attempt)
        attempt.tell_flushed = None
        right(self, attempt)

    patch.setattr(trains.Train, "board", board)


def forgets_whom_it_has_flushed(patch):
    def tell(self):
        self._leaving.clear()

    patch.setattr(trains.Train, "_tell", tell)


@pytest.mark.parametrize("mistake", [tells_before_the_flush, forgets_whom_it_has_flushed])
def test_planted_mistake_is_noticed(quick, held, caplog, monkeypatch, mistake):
    mistake(monkeypatch)

    with pytest.raises((AssertionError, DeadlineMissed)):
        story(quick, held, caplog, 1)


def test_quick_run_whose_commit_fails_holds_its_claim_no_longer(quick):
    def clashes(_event, tx):
        tx.execute(text("INSERT INTO effects VALUES ('first')"))

    quick.connection.execute(
        "ALTER TABLE effects ADD CONSTRAINT once UNIQUE (event) DEFERRABLE INITIALLY DEFERRED"
    )
    quick.on(clashes, attempts=1)
    quick.deliver(*names())

    quick.work()

    assert quick.rows("SELECT count(*) FROM hookonce.runs WHERE status = 'dead'") == [(QUICK,)]
    until(lambda: quick.drains[0].executor.shared.claims.tokens, [])


def works_long(event):
    with event.tx() as tx:
        effect(event, tx)


@pytest.mark.parametrize(
    "changes", [{"durable": True}, {"tx": "none"}], ids=["declared durable", "without a transaction"]
)
def test_runs_that_must_not_wait_for_no_flush(inbox, held, changes):
    inbox.on(works_long if "tx" in changes else effect, **changes)
    inbox.deliver("first")
    inbox.work()
    until(lambda: inbox.drains[0].executor.shared.train.ticket() is not None)
    held.clear()
    inbox.deliver(*names())

    inbox.work()

    assert not inbox.drains[0].executor.shared.train._aboard  # noqa: SLF001


def test_run_that_takes_long_waits_for_nobody_to_make_it_durable(quick, caplog):
    caplog.set_level(logging.INFO)
    enough = threading.Event()

    def stays(_event, _tx):
        enough.wait(60)

    quick.on(stays, pattern="stays")
    events = quick.deliver(*names())
    quick.deliver("stays", type="stays")
    working = threading.Thread(target=quick.work)
    working.start()
    try:
        until(lambda: sorted(told(caplog))[: len(events)], events)
    finally:
        enough.set()
        working.join()


def test_commits_wait_where_the_database_asks_for_another_durability(inbox, database_url):
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    inbox.connection.execute(f"ALTER DATABASE {name} SET synchronous_commit = 'remote_apply'")
    with connections.connect(database_url) as connection:
        assert not round_trip.can_flush(connection)


@pytest.mark.parametrize("slots", [1, 4])
def test_crash_of_the_server_loses_effect_and_end_together_and_each_run_is_done_once(
    crashing, held, slots, caplog
):
    caplog.set_level(logging.INFO)
    url = crashing.settings.database_url
    at_last, reached = threading.Event(), threading.Event()

    def works(event, tx):
        tx.execute(text("INSERT INTO effects (event) VALUES (:event)"), {"event": event.event_id})
        if event.event_id == "last" and not at_last.is_set():
            reached.set()
            at_last.wait(60)

    crashing.on(works)
    made = (
        SingleSlot(crashing.settings, crashing.registry)
        if slots == 1
        else Pool(crashing.settings, crashing.registry, slots=slots)
    )
    crashing.drains.append(made)

    def work():
        while not done.is_set():
            made.run_due()
            done.wait(0.05)

    done = threading.Event()
    working = threading.Thread(target=work)
    working.start()
    try:
        crashing.deliver("first")
        until(crashing.effects, ["first"])
        until(lambda: made.executor.shared.train.ticket() is not None)
        held.clear()
        crashing.deliver(*names(20), "last")
        assert reached.wait(30)
        until(lambda: len(crashing.effects()) >= 15)
        crash(crashing)
        held.set()
        at_last.set()
        with connected(url) as connection:
            crashing.connection = connection
            left = len(crashing.effects())
            until(lambda: sorted(set(crashing.effects())), sorted(["first", "last", *names(20)]))
            until(lambda: crashing.rows("SELECT 1 FROM hookonce.queue"), [])
            assert len(crashing.effects()) == 22
            if left == 22:  # the server's own writer came first: its pause can't be longer than ten seconds
                raise DeadlineMissed("nothing was lost: this shows nothing")
            until(lambda: len(told(caplog)), 22)
            assert len(set(told(caplog))) == 22
            assert crashing.rows("SELECT 1 FROM hookonce.failures") == []
    finally:
        done.set()
        working.join()


def flushed_meanwhile(crashing, seconds):
    """Have a quick run committed while the next handler works; wait until it would survive a crash."""
    enough, reached = threading.Event(), threading.Event()

    def stays(_event, _tx):
        reached.set()
        enough.wait(60)

    crashing.on(effect, pattern="quick")
    crashing.on(stays, pattern="stays")
    crashing.deliver("first", type="quick")
    crashing.work()
    until(lambda: crashing.drains[0].executor.shared.train.ticket() is not None)
    crashing.deliver("second", type="quick")
    crashing.deliver("stays", type="stays")
    working = threading.Thread(target=crashing.work)
    working.start()
    try:
        assert reached.wait(30)
        until(crashing.effects, ["first", "second"])
        [(written,)] = crashing.rows("SELECT pg_current_wal_insert_lsn()::text")
        until(
            lambda: crashing.rows(f"SELECT pg_current_wal_flush_lsn() >= '{written}'"),
            [(True,)],
            seconds=seconds,
        )
    finally:
        enough.set()
        working.join()


def test_run_is_flushed_while_the_next_handler_works(crashing):
    flushed_meanwhile(crashing, ENOUGH)


def test_flush_that_waits_for_the_next_handler_is_noticed(crashing, monkeypatch):
    monkeypatch.setattr(trains, "FLUSH_WITHIN", timedelta(seconds=5))

    with pytest.raises(DeadlineMissed):
        flushed_meanwhile(crashing, 1)


def test_statement_of_the_end_says_that_it_is_not_flushed(quick, monkeypatch):
    sent = []
    right = ends.round_trip

    def round_trip(connection, statements, **options):
        sent.append(plans.FOR_UNFLUSHED_END[-1] in options["first"])
        return right(connection, statements, **options)

    monkeypatch.setattr(ends, "round_trip", round_trip)
    quick.deliver(*names(3))

    quick.work()

    assert sent == [True, True, False]


def test_run_whose_flush_has_lost_its_connection_is_in_doubt(quick):
    train = quick.drains[0].executor.shared.train
    ticket = train.ticket()
    quick.connection.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE application_name = 'hookonce worker' AND datname = current_database()"
    )
    first, second = SimpleNamespace(ticket=ticket), SimpleNamespace(ticket=ticket)
    train.board(first)
    until(lambda: train.is_in_doubt)

    train.board(second)

    assert train.take_doubtful() == [first, second]
