"""Runs under way when the ledger goes away: given back at once, and told from those that take it down each time."""

import time
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

import pytest
from sqlalchemy import text

from hookonce.jobs.attempts.attempt import Executor
from hookonce.jobs.attempts.endings import LEDGER_LEFT
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.runs import ends, leases, takeover
from hookonce.receiver.ledger.runs.takeover import CHARGED_FROM, WorkerEnd
from tests.support import claiming
from tests.support.inbox import effect
from tests.support.waiting import until

END_MYSELF = "SELECT pg_terminate_backend(pg_backend_pid())"


def work_on(inbox):
    """Work, however long what is put off was to wait; what is alone now by itself."""
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
    inbox.work()


def ends_its_session(_event, tx):
    tx.execute(text(END_MYSELF))


def sits_longer_than_the_server_allows(_event, tx):
    tx.execute(text("SET LOCAL idle_in_transaction_session_timeout = '50ms'"))
    time.sleep(0.2)


async def ends_its_session_asleep(_event, tx):
    await tx.execute(text(END_MYSELF))


def ends_its_session_in_a_block(event):
    with event.tx() as tx:
        tx.execute(text(END_MYSELF))


def swallows_the_end_of_its_session(_event, tx):
    with suppress(Exception):
        tx.execute(text(END_MYSELF))


def raises_another_error(_event, tx):
    try:
        tx.execute(text(END_MYSELF))
    except Exception as error:
        raise ValueError from error


GUILTY = [
    ends_its_session,
    sits_longer_than_the_server_allows,
    ends_its_session_asleep,
    swallows_the_end_of_its_session,
    raises_another_error,
]


@pytest.mark.parametrize("handler", [*GUILTY, ends_its_session_in_a_block], ids=lambda each: each.__name__)
def test_handler_that_loses_its_connection_each_time_is_dead_at_last_and_others_go_on(inbox, handler):
    starts = []
    right = Executor._make

    def make(self, attempt, following):
        starts.extend(run.event.event_id for run in attempt.runs)
        right(self, attempt, following)

    inbox.on(
        handler, pattern="bad", attempts=2, tx="none" if handler is ends_its_session_in_a_block else None
    )
    inbox.on(effect, pattern="good")
    inbox.deliver("bad", type="bad")
    inbox.deliver("good", type="good")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Executor, "_make", make)
        until(lambda: (work_on(inbox), inbox.runs())[1][0][2:], ("dead", 2))

    assert inbox.effects() == ["good"]
    assert starts.count("bad") == CHARGED_FROM + 1, (
        "four times beside others, then alone: charged from the fifth on"
    )
    assert inbox.rows("SELECT attempt, error FROM hookonce.failures ORDER BY attempt") == [
        (1, LEDGER_LEFT),
        (2, LEDGER_LEFT),
    ]


def test_pause_of_a_run_that_loses_its_connection_grows_and_another_end_ends_the_row(inbox):
    moods = iter(["lost", "lost", "lost", "fails", "lost"])
    pauses = []

    def handler(_event, tx):
        if next(moods) == "fails":
            raise ValueError
        tx.execute(text(END_MYSELF))

    inbox.on(handler)
    inbox.deliver("a")
    for _ in range(4):
        work_on(inbox)
        inbox.work()  # settles
        pauses += inbox.rows(
            "SELECT cut_offs, greatest(round(2 * extract(epoch FROM due_at - now())), 0)::int FROM hookonce.queue"
        )

    assert pauses == [(1, 1), (2, 2), (3, 4), (1, 1)]


def test_run_whose_connection_is_ended_from_outside_is_charged_with_nothing(inbox):
    ended = []

    def is_cut_off_once(event, tx):
        (backend,) = tx.execute(text("SELECT pg_backend_pid()")).one()
        if not ended:
            ended.append(backend)
            inbox.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
        effect(event, tx)

    inbox.on(is_cut_off_once, attempts=1)
    inbox.deliver("a")

    until(lambda: (work_on(inbox), inbox.effects())[1], ["a"])

    assert inbox.runs() == [("a", "is_cut_off_once", "done", 1)]
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []


def test_runs_whose_steps_find_no_connection_are_charged_with_nothing(inbox, few_connections):
    inbox.settings = replace(inbox.settings, database_url=few_connections(1))

    def steps(event, tx):
        event.step("one", lambda _: None)
        effect(event, tx)

    inbox.on(steps, attempts=1)
    inbox.deliver("a", "b")
    for _ in range(6):
        work_on(inbox)

    assert inbox.rows("SELECT DISTINCT attempts, waits FROM hookonce.queue") == [(0, None)]
    assert inbox.effects() == []
    few_connections(10)
    until(lambda: (work_on(inbox), inbox.effects())[1], ["a", "b"])
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []


@pytest.fixture
def few_connections(inbox):
    """Give a role, and the URL for it, that may have so many connections."""

    def url(most):
        inbox.connection.execute(f"ALTER ROLE few CONNECTION LIMIT {most}")
        parts = urlsplit(inbox.settings.database_url)
        return urlunsplit(parts._replace(netloc=f"few:few@{parts.netloc.rpartition('@')[2]}"))

    inbox.connection.execute(
        "CREATE ROLE few LOGIN PASSWORD 'few' IN ROLE pg_read_all_data, pg_write_all_data"
    )
    inbox.connection.execute("GRANT ALL ON SCHEMA hookonce TO few")
    yield url
    for each in inbox.drains:
        each.close()
    inbox.connection.execute("DROP OWNED BY few")
    inbox.connection.execute("DROP ROLE few")


def test_run_whose_connection_breaks_at_its_end_is_charged_with_nothing(inbox, monkeypatch):
    broken = []
    right = ends.end

    def end(connection, *args, **options):
        if not broken:
            broken.append(connection)
            inbox.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.info.backend_pid])
        return right(connection, *args, **options)

    monkeypatch.setattr(ends, "end", end)
    inbox.on(effect, attempts=1)
    inbox.deliver("a")
    inbox.work()

    until(lambda: (work_on(inbox), inbox.effects())[1], ["a"])

    assert inbox.runs() == [("a", "effect", "done", 1)]
    assert inbox.rows("SELECT 1 FROM hookonce.failures") == []


def test_suspect_that_was_claimed_and_never_started_is_charged_with_nothing(inbox):
    inbox.on(effect, attempts=1)
    inbox.deliver("a")
    inbox.connection.execute("UPDATE hookonce.queue SET handler = 'effect', waits = 'suspect'")
    drain = SingleSlot(inbox.settings, inbox.registry)
    inbox.drains.append(drain)
    assert drain._claim_suspect() is not None  # noqa: SLF001
    inbox.lapse()

    takeover.take_over(inbox.connection, WorkerEnd(handlers=inbox.registry))

    assert inbox.rows("SELECT waits, attempts, token FROM hookonce.queue") == [("suspect", 0, None)]


def test_claim_of_which_rows_came_back_is_not_forgotten(inbox):
    inbox.on(effect)
    inbox.deliver("a", "b")
    runs = claiming.claim(inbox.connection, inbox.registry).runs
    inbox.connection.execute("DELETE FROM hookonce.queue WHERE event = %s", [runs[0].event.id])
    token = runs[0].token

    leases.forget(inbox.connection, [token])  # as by a worker that saw both end, before a crash took one back

    assert inbox.rows("SELECT token FROM hookonce.claims") == [(token,)]
    inbox.connection.execute("DELETE FROM hookonce.queue")
    leases.forget(inbox.connection, [token])
    assert inbox.rows("SELECT token FROM hookonce.claims") == []
