"""A handler that has committed by itself has left a mark: who comes for its run finds it, for that run only."""

import contextlib
import os
import socket
import threading

import psycopg
import pytest
from sqlalchemy import text

from hookonce.receiver.ledger.database import engines
from hookonce.receiver.ledger.runs import ends, marks, takeover
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from tests.stories.mistakes import replace, reword
from tests.stories.mistakes.settling import MARKED
from tests.support import claiming
from tests.support.inbox import OPEN, effect, inbox
from tests.support.rewording import statement
from tests.support.waiting import DeadlineMissed, until

__all__ = ["inbox"]

ENOUGH = 20.0
GATE = """
CREATE FUNCTION at_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(24); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (new.event LIKE 'gated%') EXECUTE FUNCTION at_the_gate()
"""


@contextlib.contextmanager
def taken(inbox):
    """A run that another worker has claimed and started, and the connection of that worker."""
    inbox.deliver("a")
    run = claiming.claim(inbox.connection, inbox.registry).runs[0]
    stale = psycopg.connect(inbox.settings.database_url)
    yield run, stale
    stale.close()


def marked(run, stale):
    ends.mark(psycopg.Cursor(stale), [run])
    stale.execute("INSERT INTO effects VALUES ('a')")


def worked(inbox):
    """Work until nothing is due, whoever must be waited for."""
    until(lambda: (inbox.work(), not inbox.rows(OPEN))[1])


def mark_open_at_the_takeover(inbox):
    with taken(inbox) as (run, stale):
        marked(run, stale)
        inbox.lapse()
        committing = threading.Thread(target=commit_when_waited_for, args=[inbox, stale])
        committing.start()
        inbox.work()
        committing.join()
        worked(inbox)


def commit_when_waited_for(inbox, stale):
    with contextlib.suppress(DeadlineMissed):
        until(lambda: waits(inbox, "transactionid"), seconds=0.5)
    stale.execute("COMMIT")


def waits(inbox, kind):
    return inbox.rows(
        f"SELECT FROM pg_locks WHERE NOT granted AND locktype = '{kind}' AND pid IN "  # noqa: S608  a constant
        "(SELECT pid FROM pg_stat_activity WHERE datname = current_database())"
    )


def mark_after_the_takeover(inbox):
    with taken(inbox) as (run, stale):
        stale.execute("SELECT 1")
        inbox.lapse()
        takeover.take_over(inbox.connection)
        with contextlib.suppress(ends.LeaseLost):
            marked(run, stale)
            stale.execute("COMMIT")
        stale.rollback()
        inbox.lapse()
        worked(inbox)


def commit_before_the_takeover(inbox):
    with taken(inbox) as (run, stale):
        marked(run, stale)
        stale.execute("COMMIT")
        inbox.lapse()
        worked(inbox)


def commit_on_its_way_when_the_connection_drops(inbox):
    """PostgreSQL goes on with a COMMIT whose client is gone, and ends it while the client's worker asks."""

    def leaves(event, tx):
        driver = tx.connection.driver_connection
        name = "gated" if event.attempt == 1 else "a"
        driver.execute("INSERT INTO effects VALUES (%s)", [name])
        if event.attempt > 1:
            return
        threading.Thread(target=open_the_gate).start()
        driver.pgconn.send_query(b"COMMIT")
        driver.pgconn.flush()
        until(lambda: waits(inbox, "advisory"))
        with socket.socket(fileno=os.dup(driver.fileno())) as copy:
            copy.shutdown(socket.SHUT_RDWR)
        raise LookupError("after all")

    def open_the_gate():
        until(lambda: waits(inbox, "advisory"))
        # Long enough for whoever asks without a lock; who waits for one does so until the COMMIT is through.
        with contextlib.suppress(DeadlineMissed):
            until(lambda: waits(inbox, "transactionid"), seconds=0.5)
        gate.execute("ROLLBACK")
        opened.set()

    inbox.connection.execute(GATE)
    opened, gate = threading.Event(), psycopg.connect(inbox.settings.database_url)
    gate.execute("SELECT pg_advisory_xact_lock(24)")
    inbox.on(leaves, attempts=2)
    inbox.deliver("a")
    try:
        inbox.work()
        assert opened.wait(ENOUGH)
        worked(inbox)
    finally:
        gate.close()


STORIES = {
    each.__name__: each
    for each in (
        mark_open_at_the_takeover,
        mark_after_the_takeover,
        commit_before_the_takeover,
        commit_on_its_way_when_the_connection_drops,
    )
}


@pytest.fixture
def patient(inbox, monkeypatch):
    """An inbox whose askers wait for a lock until it is free, so that none ends what a story waits for."""
    monkeypatch.setattr(marks, "WAIT_SHORTLY", "SET LOCAL lock_timeout = 0")
    monkeypatch.setattr(engines, "_SETTINGS", "-c client_connection_check_interval=0")
    return inbox


def told(inbox, story):
    if story is not commit_on_its_way_when_the_connection_drops:
        inbox.on(effect)
    story(inbox)
    return len(inbox.effects())


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_effect_happens_once_when(patient, story):
    assert told(patient, story) == 1
    assert patient.rows("SELECT FROM hookonce.marks") == []
    assert {row[2] for row in patient.runs()} <= {"done", "dead"}


def leaves_the_mark_out():
    reword(
        marks,
        "SELECT event, n, token FROM ours ON",
        "SELECT event, n, token FROM ours LIMIT 0 ON",
    )


def leaves_the_mark_out_with_its_lock():
    replace(
        marks, "insert", lambda cursor, _: cursor.execute("SELECT pg_current_xact_id()::text").fetchone()[0]
    )


def marks_without_the_token():
    reword(marks, "WHERE q.token = %(token)s ORDER BY q.event, q.n FOR KEY", "ORDER BY q.event, q.n FOR KEY")
    reword(marks, "SELECT event, n, token FROM ours", "SELECT event, n, %(token)s FROM ours")


def marks_without_the_lock():
    reword(marks, "FOR KEY SHARE OF q", "")


def asks_without_the_lock():
    reword(marks, "FOR UPDATE OF q", "")


def asks_in_the_statement_that_locks():
    def ask(connection, marked):
        locks = statement(marks, "FOR UPDATE OF q")
        query = locks.replace("SELECT FROM", "SELECT EXISTS (SELECT FROM hookonce.marks) FROM")
        row = connection.execute(query, marked.values).fetchone()
        return bool(row and row[0])

    replace(marks, "ask", ask)


def takes_over_without_the_lock():
    reword(takeover, "FOR UPDATE OF q", "")


def takes_over_without_asking():
    reword(takeover, MARKED, f"{MARKED} AND false")


def takes_over_by_marks_that_were_read_before_the_lock():
    said = MARKED

    def settle(connection, claim, *of_settle, **named):
        nonlocal said
        marked = connection.execute(MARKED, [claim.token]).fetchall()
        rows = "SELECT * FROM unnest(%s::bigint[], %s::smallint[]) WHERE %s IS NOT NULL"
        events, places = [row[0] for row in marked], [row[1] for row in marked]
        with psycopg.ClientCursor(connection) as cursor:
            read = cursor.mogrify(rows, [events, places, "%s"]).replace("'%s'", "%s::uuid")
        reword(takeover, said, read)
        said = read
        return right(connection, claim, *of_settle, **named)

    right = replace(takeover, "settle_claim", settle)


PLANTED = [
    (leaves_the_mark_out, commit_before_the_takeover),
    (leaves_the_mark_out, commit_on_its_way_when_the_connection_drops),
    (leaves_the_mark_out_with_its_lock, mark_open_at_the_takeover),
    (marks_without_the_token, mark_after_the_takeover),
    (marks_without_the_lock, mark_open_at_the_takeover),
    (marks_without_the_lock, commit_on_its_way_when_the_connection_drops),
    (asks_without_the_lock, commit_on_its_way_when_the_connection_drops),
    (asks_in_the_statement_that_locks, commit_on_its_way_when_the_connection_drops),
    (takes_over_without_the_lock, mark_open_at_the_takeover),
    (takes_over_without_asking, commit_before_the_takeover),
    (takes_over_by_marks_that_were_read_before_the_lock, mark_open_at_the_takeover),
]


@pytest.fixture
def planted(monkeypatch):
    """A function that plants a mistake for one test: what `replace` and `reword` change is put back."""

    def plant(mistake):
        for module in (marks, takeover, ends):
            for name, value in list(vars(module).items()):
                if not name.startswith("__"):
                    monkeypatch.setattr(module, name, value)
        mistake()

    return plant


@pytest.mark.parametrize(
    ("mistake", "story"), PLANTED, ids=[f"{mistake.__name__}, {story.__name__}" for mistake, story in PLANTED]
)
def test_planted_mistake_makes_two_effects(patient, planted, mistake, story):
    planted(mistake)

    assert told(patient, story) == 2


def test_worker_that_dies_behind_a_handlers_own_commit_leaves_a_dead_run_that_says_why(inbox):
    inbox.on(effect)
    commit_before_the_takeover(inbox)

    assert inbox.runs() == [("a", "effect", "dead", 1)]
    assert inbox.rows("SELECT error FROM hookonce.failures") == [(marks.COMMITTED,)]
    assert inbox.rows("SELECT status, due_at FROM hookonce.event_states") == [("dead", None)]


def test_only_the_attempt_that_committed_is_dead(inbox):
    """The token is the claim's: the other runs of that claim were never started."""
    inbox.on(effect)
    inbox.deliver("a", "b", "c")
    runs = claiming.claim(inbox.connection, inbox.registry).runs
    with psycopg.connect(inbox.settings.database_url) as stale:
        marked(runs[0], stale)
    inbox.lapse()

    worked(inbox)

    assert [(name, status) for name, _, status, _ in inbox.runs()] == [
        ("a", "dead"),
        ("b", "done"),
        ("c", "done"),
    ]
    assert inbox.effects() == ["a", "b", "c"]


def test_batch_that_was_committed_when_its_worker_died_is_dead_as_a_whole(inbox):
    def handler(events, tx):
        for event in events:
            effect(event, tx)

    inbox.on(handler, batch=BatchSize(4))
    inbox.deliver("a", "b", "c", "d")
    batch = claiming.claim_batch(inbox.connection, inbox.registry).batch
    with psycopg.connect(inbox.settings.database_url) as stale:
        ends.mark(psycopg.Cursor(stale), batch.runs)
        stale.execute("INSERT INTO effects VALUES ('a'), ('b'), ('c'), ('d')")
    inbox.lapse()

    worked(inbox)

    assert {row[2] for row in inbox.runs()} == {"dead"}
    assert inbox.effects() == ["a", "b", "c", "d"]
    assert inbox.rows("SELECT FROM hookonce.marks") == []


def test_open_batch_is_ended_before_its_halves_are_tried(inbox):
    def handler(events, tx):
        for event in events:
            effect(event, tx)

    inbox.on(handler, batch=BatchSize(4))
    inbox.deliver("a", "b", "c", "d")
    batch = claiming.claim_batch(inbox.connection, inbox.registry).batch
    with psycopg.connect(inbox.settings.database_url) as stale:
        ends.mark(psycopg.Cursor(stale), batch.runs)
        stale.execute("INSERT INTO effects VALUES ('a'), ('b'), ('c'), ('d')")
        inbox.lapse()

        worked(inbox)

        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            stale.execute("COMMIT")
        stale.close()
    assert inbox.effects() == ["a", "b", "c", "d"]
    assert {row[2:] for row in inbox.runs()} == {("done", 1)}


def test_nobody_is_ended_but_whose_transaction_holds_the_mark(inbox):
    inbox.on(effect)
    with taken(inbox) as (run, stale):
        marked(run, stale)
        with psycopg.connect(inbox.settings.database_url) as stranger:
            stranger.execute("SELECT pg_advisory_xact_lock(1), pg_current_xact_id()")

            assert takeover.take_over_of(inbox.connection, [run.token], WorkerEnd("it died")) == 1

            stranger.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            stale.execute("COMMIT")
        assert inbox.effects() == []


def test_row_that_a_stranger_has_locked_is_waited_for_and_nobody_is_dead(inbox):
    inbox.on(effect)
    with taken(inbox) as (run, _):
        inbox.lapse()
        with psycopg.connect(inbox.settings.database_url) as stranger:
            stranger.execute("SELECT FROM hookonce.queue WHERE event = %s FOR SHARE", [run.event.id])
            inbox.work()
            assert inbox.runs() == [("a", "effect", "running", 1)]
            stranger.execute("SELECT 1")
        inbox.lapse()

        worked(inbox)

        assert inbox.runs() == [("a", "effect", "done", 1)]


@pytest.mark.parametrize(
    "begin", ["SAVEPOINT mine", "SAVEPOINT one; SAVEPOINT mine"], ids=["one savepoint", "two"]
)
def test_mark_outlives_a_rollback_to_the_savepoint_it_was_made_in(inbox, begin):
    def meddler(event, tx):
        for each in begin.split("; "):
            tx.exec_driver_sql(each)
        driver = tx.connection.driver_connection
        tx.exec_driver_sql("ROLLBACK TO SAVEPOINT mine")
        effect(event, tx)
        driver.pgconn.exec_(b"COMMIT")
        raise LookupError("after all")

    inbox.on(meddler)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "meddler", "dead", 1)]
    assert inbox.effects() == ["a"]


@pytest.mark.parametrize("name", ["'role'", "CAST(:name AS text)"])
def test_handler_that_changes_its_role_may_take_the_driver_then(inbox, name):
    def tenant(event, tx):
        tx.execute(
            text(f"SELECT set_config({name}, 'pg_monitor', true)"), {"name": "role"} if ":" in name else {}
        )
        tx.connection.driver_connection.execute("SELECT 1")
        effect(event, tx)

    inbox.connection.execute("GRANT INSERT ON effects TO pg_monitor")
    inbox.on(tenant)
    inbox.deliver("a", "b")

    inbox.work()

    assert [row[2:] for row in inbox.runs()] == [("done", 1)] * 2


def test_ledger_is_written_whatever_role_a_function_has_taken(inbox):
    inbox.connection.execute(
        "CREATE FUNCTION be_somebody() RETURNS void LANGUAGE sql AS "
        "$$ SELECT set_config('role', 'pg_monitor', false) $$; GRANT INSERT ON effects TO pg_monitor"
    )

    def somebody(event, tx):
        tx.exec_driver_sql("SELECT be_somebody()")
        effect(event, tx)

    inbox.on(somebody)
    inbox.deliver("a", "b")

    inbox.work()

    assert [row[2:] for row in inbox.runs()] == [("done", 1)] * 2


def test_plain_handler_leaves_no_mark_and_needs_none(inbox, monkeypatch):
    monkeypatch.setattr(marks, "insert", None)
    inbox.on(effect)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "effect", "done", 1)]


def test_marks_that_say_nothing_any_more_are_forgotten(inbox):
    inbox.on(effect)
    with taken(inbox) as (run, stale):
        marked(run, stale)
        stale.commit()
        inbox.connection.execute("INSERT INTO hookonce.marks VALUES (99, 0, gen_random_uuid())")

        marks.forget(inbox.connection)

        assert inbox.rows("SELECT event FROM hookonce.marks") == [(run.event.id,)]
