"""What commits together in Django, and what becomes of handlers that get in its way."""

import time
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from django.conf import settings
from django.db import DataError, connection, connections, models, transaction
from psycopg.rows import dict_row

from hookonce import GiveUp, RetryLater
from hookonce.jobs import claimer
from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.jobs.attempts.ports import Listener
from hookonce.jobs.event import STEPS
from hookonce.jobs.report import Reporter
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.ledger.stats import worker_slots
from tests.support.django_project import entry, lead
from tests.support.inbox import inbox as plain_inbox
from tests.support.waiting import until

__all__ = ["entry", "plain_inbox"]


class Effect(models.Model):
    event = models.TextField(primary_key=True)

    class Meta:
        app_label = "hookonce"
        db_table = "effects"
        managed = False


def credit(event, connection):
    Effect.objects.create(event=event.event_id)
    return {"of": connection.alias}


@pytest.fixture
def inbox(plain_inbox, entry):
    plain_inbox.transactions = DjangoTransactions
    return plain_inbox


def last_error(inbox):
    return inbox.rows("SELECT error FROM hookonce.failures ORDER BY id DESC LIMIT 1")[0][0]


def work(inbox):
    while inbox.work():
        pass


def test_writes_of_the_orm_commit_with_the_run(inbox):
    inbox.on(credit)
    inbox.deliver("a", "b", "c")

    work(inbox)

    assert inbox.effects() == ["a", "b", "c"]
    assert {row[2:] for row in inbox.runs()} == {("done", 1)}
    assert inbox.rows("SELECT DISTINCT result::text FROM hookonce.run_states") == [('{"of": "default"}',)]


def test_every_handler_of_an_event_has_a_run_of_its_own(inbox):
    def also(event, connection):
        Effect.objects.create(event=f"{event.event_id}, also")

    inbox.on(credit)
    inbox.on(also)
    inbox.deliver("a")

    work(inbox)

    assert inbox.effects() == ["a", "a, also"]
    assert inbox.rows("SELECT status FROM hookonce.event_states") == [("done",)]


def test_writes_of_a_failed_attempt_are_rolled_back(inbox):
    def fail_once(event, connection):
        Effect.objects.create(event=event.event_id)
        if event.attempt == 1:
            raise ValueError("no such customer")

    inbox.on(fail_once)
    inbox.deliver("a")

    work(inbox)

    assert inbox.effects() == ["a"]
    assert inbox.runs() == [("a", "fail_once", "done", 2)]
    assert last_error(inbox).startswith("ValueError: no such customer (tests/frameworks/")


@pytest.mark.parametrize(("verdict", "status"), [(GiveUp("never"), "dead"), (RetryLater(0), "waiting")])
def test_verdicts_of_a_handler_roll_back(inbox, verdict, status):
    def judge(event, connection):
        Effect.objects.create(event=event.event_id)
        raise verdict

    inbox.on(judge, attempts=1)
    inbox.deliver("a")

    inbox.work()

    assert inbox.effects() == []
    assert inbox.rows("SELECT status FROM hookonce.run_states") == [(status,)]


def test_hooks_of_on_commit_find_the_run_done(inbox, database_url):
    seen = []

    def look():
        with psycopg.connect(database_url) as other:
            seen.append(
                other.execute("SELECT r.status, e.event FROM hookonce.run_states r, effects e").fetchall()
            )

    def hooked(event, connection):
        Effect.objects.create(event=event.event_id)
        transaction.on_commit(look)
        if event.attempt == 1:
            raise ValueError

    inbox.on(hooked)
    inbox.deliver("a")

    work(inbox)

    assert seen == [[("done", "a")]]


def test_failing_hook_of_on_commit_leaves_the_run_done(inbox, caplog):
    def hooked(event, connection):
        Effect.objects.create(event=event.event_id)
        transaction.on_commit(lambda: 1 / 0)

    inbox.on(hooked)
    inbox.deliver("a", "b")

    work(inbox)

    assert inbox.effects() == ["a", "b"]
    assert [row[2:] for row in inbox.runs()] == [("done", 1), ("done", 1)]
    assert "a hook of on_commit failed: ZeroDivisionError" in caplog.text


def test_hook_of_on_commit_that_takes_too_long_is_cut_off(inbox, caplog):
    def hooked(event, connection):
        Effect.objects.create(event=event.event_id)
        transaction.on_commit(lambda: time.sleep(30))

    inbox.on(hooked, timeout=timedelta(seconds=0.2))
    inbox.deliver("a", "b")

    work(inbox)

    assert [row[2:] for row in inbox.runs()] == [("done", 1), ("done", 1)]
    assert "a hook of on_commit failed: TimeUp" in caplog.text


def test_part_that_a_handler_rolls_back_takes_nothing_else_along(inbox):
    def in_parts(event, connection):
        Effect.objects.create(event="whole")
        with pytest.raises(DataError), transaction.atomic():
            connection.cursor().execute("SELECT 1/0")
        with transaction.atomic():
            Effect.objects.create(event="part")
            transaction.set_rollback(True)

    inbox.on(in_parts)
    inbox.deliver("a")

    work(inbox)

    assert (inbox.effects(), inbox.runs()[0][2:]) == (["whole"], ("done", 1))


def swallow(event, connection):
    with suppress(DataError):
        connection.cursor().execute("SELECT 1/0")


def set_rollback(event, connection):
    transaction.set_rollback(True)


def close(event, connection):
    connection.close()


def commit_in_django(event, connection):
    transaction.commit()


def be_durable(event, connection):
    with transaction.atomic(durable=True):
        pass


def return_no_json(event, connection):
    return Effect(event="a")


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (swallow, "RuntimeError: the handler returned with its transaction aborted"),
        (set_rollback, "RolledBack: the handler returned after an error of the database"),
        (close, "RolledBack: the handler closed the connection"),
        (commit_in_django, "TransactionManagementError: This is forbidden"),
        (be_durable, "RuntimeError: A durable atomic block cannot be nested"),
        (return_no_json, "TypeError: a handler returns None or JSON"),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_handler_in_the_way_of_its_transaction_fails(inbox, handler, said):
    def handle(event, connection):
        Effect.objects.create(event=event.event_id)
        if event.attempt == 1:
            return handler(event, connection)
        return None

    inbox.on(handle)
    inbox.deliver("a")

    work(inbox)

    assert (inbox.effects(), inbox.runs()[0][2:]) == (["a"], ("done", 2))
    assert last_error(inbox).startswith(said)


@pytest.mark.parametrize("statement", ["COMMIT", "COMMIT AND CHAIN", "COMMIT; BEGIN"])
@pytest.mark.parametrize("fails", [True, False])
def test_handler_that_commits_past_django_writes_nothing(inbox, statement, fails):
    def handle(event, connection):
        Effect.objects.create(event=event.event_id)
        connection.connection.execute(statement)
        Effect.objects.create(event="later")
        if fails:
            raise ValueError("and then")

    inbox.on(handle)
    inbox.deliver("a")

    work(inbox)

    assert (inbox.effects(), inbox.runs()[0][2]) == ([], "dead")


@pytest.mark.parametrize("goes_on", [True, False])
def test_rolled_back_by_the_driver_is_dead_at_once(inbox, goes_on):
    def handle(event, connection):
        Effect.objects.create(event=event.event_id)
        if event.attempt == 1:
            connection.connection.rollback()
            if goes_on:
                Effect.objects.create(event="lost with it")

    inbox.on(handle)
    inbox.deliver("a")

    work(inbox)

    assert (inbox.effects(), inbox.runs()[0][2:]) == ([], ("dead", 1))
    assert "the handler ended the transaction it was given" in last_error(inbox)


@pytest.mark.parametrize("statement", ["SELECT pg_sleep(30)", None])
def test_handler_that_takes_too_long_is_cut_off_and_its_backend_ended(inbox, statement):
    def handle(event, connection):
        Effect.objects.create(event=event.event_id)
        if event.attempt == 1:
            connection.cursor().execute(statement) if statement else time.sleep(30)

    inbox.on(handle, timeout=timedelta(seconds=0.3))
    inbox.deliver("a")

    work(inbox)

    assert (inbox.effects(), inbox.runs()[0][2:]) == (["a"], ("done", 2))
    assert last_error(inbox).startswith("took longer than 0.3 s")


def test_rows_are_read_as_ever_after_a_handler_that_has_set_a_factory_of_its_own(inbox):
    def reads(event, connection):
        found.append(connection.connection.execute("SELECT 1 AS one").fetchone())
        connection.connection.row_factory = dict_row

    found = []
    inbox.on(reads)
    inbox.deliver("a", "b")

    work(inbox)

    assert found == [(1,), (1,)]


def test_lost_lease_rolls_back_what_the_orm_wrote(inbox):
    def handle(event, connection):
        Effect.objects.create(event=event.event_id)
        inbox.steal()

    inbox.on(handle)
    inbox.deliver("a")

    inbox.work()

    assert (inbox.effects(), inbox.runs()[0][2:]) == ([], ("running", 1))


def test_values_of_a_row_are_left_out_of_the_error(inbox):
    inbox.connection.execute("CREATE UNIQUE INDEX ON effects (event)")
    inbox.on(credit, attempts=1)
    Effect.objects.create(event="secret-4711")
    inbox.deliver("secret-4711")

    work(inbox)

    kept = inbox.rows("SELECT error, convert_from(traceback, 'UTF8') FROM hookonce.failures")[0]
    assert "IntegrityError" in kept[0]
    assert "4711" not in "".join(kept)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("use_tz", [True, False])
def test_zone_of_a_connection_changes_nothing_that_is_read(inbox, entry, settings_of_django, zone, use_tz):
    settings_of_django.USE_TZ = use_tz
    lead("default", {**entry, **({"TIME_ZONE": zone} if use_tz else {})})
    seen = []

    def look(event, connection):
        with connection.cursor() as cursor:
            cursor.execute("SELECT now(), current_setting('timezone')")
            cursor.fetchone()
        seen.append((event.received_at, event.headers))
        Effect.objects.create(event=event.event_id)

    inbox.on(look)
    (event_id,) = inbox.deliver("a")
    with inbox.connection.cursor() as cursor:
        ((expected,),) = cursor.execute(
            "SELECT received_at FROM hookonce.event_states WHERE id = %s", [event_id]
        )

    work(inbox)

    assert (seen[0][0], seen[0][0].utcoffset()) == (expected, timedelta(0))
    assert isinstance(seen[0][1], dict)
    assert inbox.runs()[0][2:] == ("done", 1)


@pytest.fixture
def settings_of_django():
    was = settings.USE_TZ
    yield settings
    settings.USE_TZ = was


def test_declared_isolation_is_that_of_the_transaction(inbox):
    levels = []

    def look(event, connection):
        with connection.cursor() as cursor:
            cursor.execute("SHOW transaction_isolation")
            levels.append(cursor.fetchone()[0])

    inbox.on(look, isolation="serializable")
    inbox.deliver("a")

    work(inbox)

    assert levels == ["serializable"]


def test_connection_is_kept_from_run_to_run_unless_a_handler_changed_it(inbox):
    pids = []

    def look(event, connection):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid(), current_setting('lock_timeout')")
            pids.append(cursor.fetchone())
            if event.event_id == "b":
                cursor.execute("SET lock_timeout = '7s'")
                cursor.execute("PREPARE mine AS SELECT 1")

    inbox.on(look)
    inbox.deliver("a", "b", "c")

    work(inbox)

    assert pids[0] == pids[1]
    assert pids[2][0] != pids[1][0]
    assert {each[1] for each in pids} == {"0"}


def test_run_is_done_over_a_connection_that_was_lost(inbox):
    inbox.on(credit)
    inbox.deliver("a")
    work(inbox)
    inbox.connection.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND application_name = ''"
    )

    inbox.deliver("b")
    work(inbox)

    assert inbox.effects() == ["a", "b"]


@pytest.mark.parametrize("is_committed", [False, True], ids=["before its COMMIT", "behind its COMMIT"])
def test_end_that_is_cut_off_is_charged_with_nothing_and_done_once(inbox, monkeypatch, is_committed):
    def commit(driver):
        if not cut_off and driver is connections["default"].connection:
            cut_off.append(driver.info.backend_pid)
            if is_committed:
                right(driver)
            inbox.connection.execute("SELECT pg_terminate_backend(%s, 5000)", cut_off)
            driver.execute("SELECT 1")
        right(driver)

    right, cut_off = psycopg.Connection.commit, []
    inbox.on(credit, attempts=1)
    inbox.deliver("a")
    monkeypatch.setattr(psycopg.Connection, "commit", commit)

    until(lambda: (work(inbox), inbox.runs())[1], [("a", "credit", "done", 1)])

    assert cut_off
    assert inbox.effects() == ["a"]
    assert not inbox.rows("SELECT FROM hookonce.failures")


def test_attempts_in_django_are_heard_of_too(inbox, monkeypatch):
    heard = []

    class Heard(Listener):
        def ended(self, run, ending):
            heard.append((run.handler, ending.status))

    monkeypatch.setattr(claimer, "listener_of", lambda _: Heard())
    inbox.on(credit)
    inbox.deliver("a")
    work(inbox)

    assert heard == [("credit", "done")]


def test_ledger_of_the_orm_is_not_left_in_a_transaction(inbox):
    inbox.on(credit)
    inbox.deliver("a")

    work(inbox)

    assert not connection.in_atomic_block
    assert connections["default"].get_autocommit()
    states = inbox.rows(
        "SELECT DISTINCT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend'"
    )
    assert states == [("idle",)]


def test_step_stays_done_where_the_orm_s_writes_are_rolled_back(inbox):
    def pay(event, connection):
        charge = event.step("charge", lambda key: charges.append(key) or {"id": len(charges)})
        Effect.objects.create(event=f"{event.event_id} {charge['id']}")
        if event.attempt == 1:
            raise ValueError("no such customer")

    charges = []
    inbox.on(pay)
    inbox.deliver("a")

    work(inbox)

    assert (inbox.effects(), len(charges)) == (["a 1"], 1)
    assert inbox.rows("SELECT state, attempt FROM hookonce.steps") == [("completed", 1)]


def test_handler_of_django_does_not_return_in_the_midst_of_a_step(inbox):
    def pay(event, connection):
        begun.append(event.capability(STEPS))  # as a thread would that goes on
        begun[0]._under_way.add("charge")  # noqa: SLF001

    begun = []
    inbox.on(pay, attempts=1)
    inbox.deliver("a")

    work(inbox)

    assert "the handler returned before these steps had ended: 'charge'" in last_error(inbox)


def test_handler_that_wrote_and_waits_is_named(inbox, monkeypatch):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    found = []

    def waits(event, connection):
        Effect.objects.create(event=event.event_id)
        time.sleep(0.2)
        reporter.look()
        found.extend(worker_slots.long_transactions(inbox.connection))

    inbox.on(waits)
    [event] = inbox.deliver("a")
    inbox.drains.append(SingleSlot(inbox.settings, inbox.registry, DjangoTransactions))
    reporter = Reporter(inbox.drains[0].slot, inbox.drains[0].lent)

    work(inbox)

    assert [(each.handler, each.event) for each in found] == [("waits", event)]
