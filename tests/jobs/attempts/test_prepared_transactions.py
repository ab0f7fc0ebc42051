"""A handler that prepares its transaction: nobody knows what comes of it, so its run waits, and nobody else does."""

import contextlib
import shutil
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.jobs.stopping import hurrying, stopping
from hookonce.receiver.dev.embedded import Postgres, postgres
from hookonce.receiver.ledger.database import migrate
from hookonce.receiver.ledger.runs import marks
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.support.django_project import entry
from tests.support.inbox import inbox
from tests.support.waiting import until

__all__ = ["entry", "inbox"]

NAMES = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"
WITHOUT_CLAIM = """
SELECT count(*) FROM hookonce.queue q WHERE token IS NOT NULL
       AND NOT EXISTS (SELECT FROM hookonce.claims c WHERE c.token = q.token AND c.lease_until > now() + interval '9 s')
"""


@pytest.fixture(scope="module")
def server(disk):
    directory = Path(tempfile.mkdtemp(prefix="hookonce-tests-", dir=disk))
    directory.chmod(0o711)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(postgres.SETTINGS, "max_prepared_transactions", "10")
        started = Postgres.start(directory, durable=False)
    yield started
    started.stop()
    shutil.rmtree(directory)


@pytest.fixture
def database_url(server, request):
    name = f"of_{abs(hash(request.node.name))}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = server.url.replace("@/hookonce?", f"@/{name}?")
    assert conninfo.conninfo_to_dict(url)["dbname"] == name
    migrate.upgrade(url)
    return url


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Ask for a lock no longer than it takes to see that nobody ends who holds it."""
    monkeypatch.setattr(marks, "WAIT_SHORTLY", "SET LOCAL lock_timeout = 50")
    monkeypatch.setattr(marks, "TRIES", 2)


def prepare(driver, event):
    driver.execute("INSERT INTO effects VALUES (%s)", [event.event_id])
    if event.event_id == "a" and not driver.execute("SELECT FROM prepared").rowcount:
        with psycopg.connect(driver.info.dsn, autocommit=True) as other:
            other.execute("INSERT INTO prepared VALUES (true)")
        driver.pgconn.exec_(f"PREPARE TRANSACTION '{driver.info.dbname}'".encode())


def plain(event, tx):
    prepare(tx.connection.driver_connection, event)


def failing(event, tx):
    plain(event, tx)
    if tx.connection.driver_connection.info.transaction_status == 0:
        raise LookupError("after all")


def of_django(event, connection):
    connection.ensure_connection()
    prepare(connection.connection, event)


def of_blocks(event):
    with event.tx() as tx:
        prepare(tx.connection.driver_connection, event)


def of_blocks_that_goes_on(event):
    with contextlib.suppress(Exception):  # it is told of its rollback
        of_blocks(event)


def batch(events, tx):
    for event in sorted(events, key=lambda event: event.event_id, reverse=True):
        prepare(tx.connection.driver_connection, event)


@contextmanager
def one(inbox, transactions=None):
    drain = SingleSlot(inbox.settings, inbox.registry, *([transactions] if transactions else []))
    yield drain
    drain.close()


@contextmanager
def slots(inbox):
    pool = Pool(inbox.settings, inbox.registry, slots=2)
    yield pool
    pool.close()
    stopping.clear()
    hurrying.clear()


KINDS = {
    "plain": (plain, {}, one),
    "failing": (failing, {}, one),
    "in a slot": (plain, {}, slots),
    "batch": (batch, {"batch": BatchSize(2)}, one),
    "batch in a slot": (batch, {"batch": BatchSize(2)}, slots),
    "Django": (of_django, {}, partial(one, transactions=DjangoTransactions)),
}
OF_BLOCKS = {
    "block": (of_blocks, {"tx": "none"}, one),
    "block that is given up": (of_blocks_that_goes_on, {"tx": "none"}, one),
    "block in a slot": (of_blocks, {"tx": "none"}, slots),
}


def statuses(inbox):
    return {name: status for name, _, status, _ in inbox.runs()}


@contextmanager
def left_prepared(inbox, kind):
    """A worker that goes on beside what the handler of event `a` has prepared; gives what looks for due runs."""
    function, options, worker_of = kind
    inbox.connection.execute("CREATE TABLE prepared (is_so bool)")
    inbox.on(function, **options)
    is_batch = "batch" in options
    inbox.deliver("a", *(["b"] if is_batch else []))
    with worker_of(inbox) as worker:

        def worked(expected):
            until(lambda: (worker.run_due(), statuses(inbox))[1], expected)

        [(gid,)] = until(lambda: (worker.run_due(), inbox.rows(NAMES))[1])
        others = {"c": "done", "d": "done"} if is_batch else {"b": "done"}
        inbox.deliver(*others)
        kept = {"a": "running"} | ({"b": "running"} if is_batch else {})
        worked(kept | others)
        until(lambda: worker.executor.shared.claims.tokens, [])  # nobody renews it
        inbox.lapse()
        inbox.deliver("e", *(["f"] if is_batch else []))
        others |= {"e": "done"} | ({"f": "done"} if is_batch else {})
        worked(kept | others)
        until(lambda: (worker.run_due(), inbox.rows(WITHOUT_CLAIM))[1], [(0,)])

        def end(how, expected):
            inbox.connection.execute(f"{how} PREPARED '{gid}'")
            inbox.lapse()
            until(
                lambda: (
                    worker.run_due(),
                    inbox.rows("SELECT count(*) FROM hookonce.queue WHERE token IS NOT NULL"),
                )[1],
                [(0,)],
            )
            inbox.work()  # suspects are for another process, where there are slots
            worked(dict.fromkeys(kept, expected) | others)

        yield end


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_run_whose_transaction_is_prepared_is_dead_once_that_is_committed(inbox, kind):
    with left_prepared(inbox, kind) as end:
        end("COMMIT", "dead")

    assert inbox.effects() == sorted(statuses(inbox))
    assert {error for (error,) in inbox.rows("SELECT error FROM hookonce.failures")} == {marks.COMMITTED}
    assert inbox.rows("SELECT FROM hookonce.marks") == []


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize("kind", (KINDS | OF_BLOCKS).values(), ids=KINDS | OF_BLOCKS)
def test_run_whose_transaction_is_prepared_is_tried_again_once_that_is_rolled_back(inbox, kind):
    with left_prepared(inbox, kind) as end:
        end("ROLLBACK", "done")

    assert inbox.effects() == sorted(statuses(inbox))
    assert inbox.rows("SELECT FROM hookonce.marks") == []
