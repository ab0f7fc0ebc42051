"""Handlers without an open transaction: what they write, what they hold, and what a stale worker may not."""

import threading
import time
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from hookonce import LeaseLost
from hookonce.jobs.attempts import heartbeat
from hookonce.jobs.attempts.long_run import OPEN_ALREADY, OTHER_THREAD, TOO_LONG
from hookonce.jobs.attempts.own_claims import OwnClaims
from hookonce.jobs.attempts.transaction_guard import BLOCK_REFUSED
from hookonce.jobs.event import HAS_TRANSACTION, Refusal
from hookonce.jobs.handlers import GiveUp, HandlerError, Registry, RetryLater
from hookonce.jobs.registration import on
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.runs import leases, takeover
from tests.support import claiming
from tests.support.inbox import inbox
from tests.support.waiting import until

__all__ = ["inbox"]

OPEN = """
SELECT count(*) FROM pg_stat_activity
WHERE application_name = 'hookonce worker' AND datname = current_database() AND xact_start IS NOT NULL
"""


def write(event, what="effect"):
    with event.tx() as tx:
        tx.execute(text("INSERT INTO effects VALUES (:what)"), {"what": f"{event.event_id} {what}"})


@pytest.fixture
def long(inbox):
    """A function that registers a handler without a transaction."""
    return lambda function, **options: inbox.on(function, tx="none", **options)


@pytest.fixture
def other_worker(inbox):
    worker = SingleSlot(inbox.settings, inbox.registry)
    yield worker
    worker.close()


def errors(inbox):
    return [row[0] for row in inbox.rows("SELECT error FROM hookonce.failures ORDER BY id")]


def test_each_transaction_is_committed_by_itself(inbox, long):
    seen = []

    def works(event):
        write(event, "1")
        seen.append(inbox.effects())
        write(event, "2")
        return {"ok": True}

    long(works)
    inbox.deliver("a")
    inbox.work()

    assert seen == [["a 1"]]
    assert inbox.effects() == ["a 1", "a 2"]
    assert inbox.rows("SELECT status, attempts, result FROM hookonce.run_states") == [
        ("done", 1, {"ok": True})
    ]


def test_no_transaction_is_open_while_it_waits(inbox, long):
    seen = []

    def works(event):
        write(event)
        seen.append(inbox.rows(OPEN))

    long(works)
    inbox.deliver("a", "b")
    inbox.work()

    assert seen == [[(0,)], [(0,)]]


def test_what_was_committed_stays_when_it_fails_and_it_is_tried_again(inbox, long):
    def fails(event):
        write(event, str(event.attempt))
        if event.attempt == 1:
            raise ValueError("later")

    long(fails)
    inbox.deliver("a")
    inbox.work()

    assert inbox.effects() == ["a 1", "a 2"]
    assert inbox.runs() == [("a", "fails", "done", 2)]


def test_transaction_that_an_error_leaves_is_rolled_back(inbox, long):
    def recovers(event):
        with suppress(ValueError), event.tx() as tx:
            tx.execute(text("INSERT INTO effects VALUES ('never')"))
            raise ValueError("no")
        write(event)

    long(recovers)
    inbox.deliver("a")
    inbox.work()

    assert inbox.effects() == ["a effect"]


class Base(DeclarativeBase):
    pass


class Effect(Base):
    __tablename__ = "effects"
    event: Mapped[str] = mapped_column(primary_key=True)


def test_session_in_a_transaction_commits_and_rolls_back_what_is_its_own(inbox, long):
    def works(event):
        with event.tx() as tx, Session(tx, join_transaction_mode="create_savepoint") as session:
            with session.begin():
                session.add(Effect(event="kept"))
            with suppress(LookupError), session.begin():
                session.add(Effect(event="taken back"))
                session.flush()
                raise LookupError
            tx.execute(text("INSERT INTO effects VALUES ('beside it')"))

    long(works, attempts=1)
    inbox.deliver("a")
    inbox.work()

    assert inbox.effects() == ["beside it", "kept"]


def test_session_that_an_error_leaves_takes_its_transaction_along(inbox, long):
    def fails(event):
        with (
            event.tx() as tx,
            Session(tx, join_transaction_mode="create_savepoint") as session,
            session.begin(),
        ):
            session.add(Effect(event="never"))
            session.flush()
            raise ValueError("no")

    long(fails, attempts=1)
    inbox.deliver("a")
    inbox.work()

    assert inbox.effects() == []
    assert [error.split(" (")[0] for error in errors(inbox)] == ["ValueError: no"]


def test_stale_worker_can_not_write(inbox, long):
    lost = []

    def stale(event):
        inbox.steal()
        with pytest.raises(LeaseLost) as caught:
            write(event)
        lost.append(str(caught.value))
        raise caught.value

    long(stale)
    inbox.deliver("a")
    inbox.work()

    assert "another worker may have it; this transaction has written nothing" in lost[0]
    assert (inbox.effects(), errors(inbox)) == ([], [])
    assert inbox.runs() == [("a", "stale", "running", 1)]


def test_stale_worker_that_goes_on_can_not_end_the_run(inbox, long):
    def stale(event):
        write(event)
        inbox.steal()

    long(stale)
    inbox.deliver("a")
    inbox.work()

    assert inbox.runs() == [("a", "stale", "running", 1)]


def test_nobody_takes_the_run_over_while_a_transaction_is_open(inbox, long):
    def holds(event):
        inbox.lapse()
        with event.tx():
            takeover.take_over(inbox.connection)
            assert inbox.runs() == [("a", "holds", "running", 1)]

    long(holds)
    inbox.deliver("a")
    inbox.work()

    assert inbox.runs() == [("a", "holds", "done", 1)]


LEFT = "SELECT extract(epoch FROM lease_until - now())::int FROM hookonce.claims"


def test_lease_is_short_and_renewed_in_a_transaction_too(inbox, long, monkeypatch):
    monkeypatch.setattr(leases, "RENEW_INTERVAL", timedelta(seconds=0.05))
    seen = []

    def waits(event):
        seen.append(inbox.rows(LEFT)[0][0])
        with event.tx():
            inbox.connection.execute("UPDATE hookonce.claims SET lease_until = now() + interval '2 s'")
            until(lambda: inbox.rows(LEFT)[0][0] >= 25)
        seen.append(inbox.rows(LEFT)[0][0])

    long(waits, timeout=timedelta(minutes=30))
    inbox.deliver("a")
    inbox.work()

    assert [28 <= each <= 30 for each in seen] == [True, True]
    assert inbox.runs() == [("a", "waits", "done", 1)]


def test_step_lasts_as_long_as_the_renewed_lease_of_its_run(inbox, long, monkeypatch, other_worker):
    monkeypatch.setattr(leases, "RENEW_INTERVAL", timedelta(seconds=0.05))
    calls, taken = [], []

    def charges(event):
        def charge(key):
            calls.append(key)
            [(end,)] = inbox.rows(
                "UPDATE hookonce.claims SET lease_until = now() + interval '1 s' RETURNING now() + interval '1.2 s'"
            )
            until(lambda: inbox.connection.execute("SELECT now() > %s", [end]).fetchone()[0])
            taken.append(other_worker.run_due())
            return len(calls)

        return event.step("charge", charge)

    long(charges)
    inbox.deliver("a")
    inbox.work()

    assert inbox.runs() == [("a", "charges", "done", 1)]
    assert inbox.rows("SELECT state, attempt FROM hookonce.steps") == [("completed", 1)]
    assert (len(calls), taken) == (1, [0])


def test_stale_worker_gets_no_step(inbox, long):
    calls = []

    def stale(event):
        inbox.steal()
        event.step("charge", calls.append)

    long(stale)
    inbox.deliver("a")
    inbox.work()

    assert (calls, errors(inbox)) == ([], [])
    assert inbox.runs() == [("a", "stale", "running", 1)]


def test_renewal_renews_nothing_that_is_another_s(inbox, long):
    renewed = []

    def stale(_event):
        [(token,)] = inbox.rows("SELECT token FROM hookonce.run_states")
        renewed.append(leases.renew(inbox.connection, [token]) == {token})
        inbox.steal()
        renewed.append(leases.renew(inbox.connection, [token]) == {token})

    long(stale)
    inbox.deliver("a")
    inbox.work()

    assert renewed == [True, False]


def test_transaction_that_is_open_for_too_long_is_cut(inbox, long, monkeypatch):
    monkeypatch.setattr(leases, "TRANSACTION_LIMIT", timedelta(seconds=0.1))

    def dawdles(event):
        with event.tx() as tx:
            time.sleep(1.5)
            tx.execute(text("INSERT INTO effects VALUES ('late')"))

    long(dawdles, attempts=1)
    inbox.deliver("a")
    inbox.work()

    assert inbox.effects() == []
    assert inbox.runs() == [("a", "dawdles", "dead", 1)]
    assert errors(inbox)[0].startswith(f"OverlongBlock: {TOO_LONG.format(0.1)}")


def test_transactions_do_not_nest_and_are_not_for_other_threads(inbox, long):
    found = []

    def wrong(event):
        with event.tx() as tx:
            with pytest.raises(RuntimeError) as nested, event.tx():
                pass
            tx.execute(text("INSERT INTO effects VALUES ('outer')"))

        def elsewhere():
            with pytest.raises(RuntimeError) as other, event.tx():
                pass
            found.append(str(other.value))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        found.append(str(nested.value))

    long(wrong)
    inbox.deliver("a")
    inbox.work()

    assert found == [OTHER_THREAD, OPEN_ALREADY]
    assert inbox.effects() == ["outer"]


@pytest.mark.parametrize(
    ("raised", "run"),
    [
        (GiveUp("no"), ("dead", 1)),
        (RetryLater(3600), ("waiting", 0)),
        (Refusal(409, "no"), ("dead", 1)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_handler_says_how_it_ends(inbox, long, raised, run):
    def says(event):
        write(event)
        raise raised

    long(says)
    inbox.deliver("a")
    inbox.work()

    assert inbox.runs() == [("a", "says", *run)]
    assert inbox.effects() == ["a effect"]


def test_long_and_other_handlers_take_turns(inbox, long):
    def plain(event, tx):
        tx.execute(text("INSERT INTO effects VALUES (:what)"), {"what": f"{event.event_id} plain"})
        with pytest.raises(RuntimeError, match="second argument"):
            event.tx()

    long(write_one)
    inbox.on(plain)
    inbox.deliver("a", "b", "c")
    inbox.work()

    assert inbox.effects() == sorted(f"{each} {how}" for each in "abc" for how in ("effect", "plain"))
    assert "second argument" in HAS_TRANSACTION


def write_one(event):
    write(event)


def test_time_limit_holds_for_long_runs(inbox, long):
    def spins(event):
        write(event)
        while True:
            time.sleep(0.01)

    long(spins, timeout=timedelta(seconds=1), attempts=1)
    inbox.deliver("a")
    inbox.work()

    assert errors(inbox) == ["took longer than 1 s"]
    assert inbox.effects() == ["a effect"]


def test_worker_that_died_at_it_is_replaced_when_its_lease_is_over(inbox, long):
    long(write_one)
    inbox.deliver("a")
    claiming.claim(inbox.connection, inbox.registry)
    [(lease,)] = inbox.rows(LEFT)
    inbox.work()
    early = inbox.runs()
    inbox.lapse()
    inbox.work()

    assert 28 <= lease <= 30
    assert early == [("a", "write_one", "running", 1)]
    assert inbox.runs() == [("a", "write_one", "done", 1)]


@pytest.mark.parametrize("error", [psycopg.OperationalError, LookupError], ids=["ledger", "listener"])
def test_heartbeat_that_fails_says_so_and_goes_on(caplog, inbox, error):
    def away():
        raise error("gone")

    inbox.on(write_one, tx="none")
    inbox.deliver("a")
    held = OwnClaims()
    held.add(claiming.claim(inbox.connection, inbox.registry).runs)

    heartbeat.Heartbeat(held, away).beat()

    assert f"the leases of 1 claims were not renewed: {error.__name__}" in caplog.text
    assert len(held.tokens) == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"tx": "some"}, "tx='some' is wrong; expected 'none'"),
        ({"tx": "none", "isolation": "serializable"}, "isolation='serializable' is of a transaction"),
    ],
)
def test_tx_that_makes_no_sense_is_refused(options, expected):
    with pytest.raises(HandlerError, match=expected):
        on("stripe", name="h", **options)(write_one)


def test_handler_must_take_the_event_alone(monkeypatch):
    monkeypatch.setattr("hookonce.jobs.handlers.registry", Registry())

    with pytest.raises(HandlerError, match=r"must take one argument, \(event\)"):
        on("stripe", name="h", tx="none")(lambda event, tx: None)  # noqa: ARG005

    async def waits(_event):
        pass

    with pytest.raises(HandlerError, match="is an async def; with tx='none' it is a plain function"):
        on("stripe", name="h", tx="none")(waits)


def commits(tx):
    tx.commit()


def commits_by_sql(tx):
    tx.execute(text("COMMIT"))


@pytest.mark.parametrize("ends", [commits, commits_by_sql])
def test_commit_in_a_block_is_told_to_end_the_block(inbox, long, ends):
    def works(event):
        with event.tx() as tx:
            tx.execute(text("INSERT INTO effects VALUES ('x')"))
            ends(tx)

    long(works, attempts=1)
    inbox.deliver("a")
    inbox.work()

    [error] = errors(inbox)
    assert BLOCK_REFUSED in error
    assert (inbox.effects(), inbox.runs()) == ([], [("a", "works", "dead", 1)])


def test_block_that_is_not_entered_says_how_it_is_meant(inbox, long):
    def works(event):
        event.tx().execute(text("SELECT 1"))

    long(works, attempts=1)
    inbox.deliver("a")
    inbox.work()

    [error] = errors(inbox)
    assert "with event.tx() as tx: tx.execute(…)" in error


def test_block_that_was_rolled_back_inside_is_told_of_savepoints(inbox, long):
    def works(event):
        with event.tx() as tx:
            tx.connection.driver_connection.rollback()

    long(works, attempts=1)
    inbox.deliver("a")
    inbox.work()

    [error] = errors(inbox)
    assert "tx.begin_nested()" in error
    assert "session" not in error
