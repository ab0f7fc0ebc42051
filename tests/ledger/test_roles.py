"""Roles of PostgreSQL of their own: each can do its work, and not what is another's."""

import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import text

from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.ledger import event_states, events, failures, queue, run_states, runs
from hookonce.receiver.app import create_app
from hookonce.receiver.config.server_urls import with_schema
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.encryption import OFF
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.access import api_tokens, audit_log
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.database import connections, migrate, roles
from hookonce.receiver.ledger.database.roles import RIGHTS, Task
from hookonce.receiver.ledger.maintenance import erasure, partitions
from hookonce.receiver.ledger.maintenance.partitions import DropResult
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.needles import Needle
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import put_into_state

CLAIM = """
INSERT INTO hookonce.claims (token, lease_until, events, places) VALUES (gen_random_uuid(), now(), '{}', '{}')
"""
GUARD = "SELECT hookonce.guard_transaction()"
END = """
SELECT hookonce.end_runs(ARRAY[%(event)s]::bigint[], ARRAY[%(n)s]::smallint[], %(token)s,
                         '1 ms'::interval, '{"{}"}', '{NULL}', '{NULL}', '{NULL}', '{NULL}')
"""
OUTCOME = """
INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) VALUES (1, 'h', 1, 'done', 1, now())
"""
OTHERS = {
    Task.RECEIVER: (
        "SELECT FROM hookonce.bodies",
        "SELECT FROM hookonce.audit",
        "SELECT FROM hookonce.api_tokens",
        "DELETE FROM hookonce.events",
        "UPDATE hookonce.events SET source = 'other'",
        "UPDATE hookonce.queue SET due_at = now()",
        "DELETE FROM hookonce.queue",
        "UPDATE hookonce.runs SET status = 'done'",
        CLAIM,
        "INSERT INTO hookonce.pauses (kind, name) VALUES ('source', 'stripe')",
        "INSERT INTO hookonce.bulk_replays (who, filter, matched, until_event) VALUES ('me', '{}', 0, 0)",
        "SELECT hookonce.drop_partition(current_date)",
    ),
    Task.WORKER: (
        "SELECT FROM hookonce.api_tokens",
        "INSERT INTO hookonce.api_tokens (name, hash, scopes) VALUES ('mine', '', '{}')",
        "UPDATE hookonce.audit SET who = 'nobody'",
        "UPDATE hookonce.bodies SET body = ''",
        "UPDATE hookonce.events SET source = 'other'",
        "INSERT INTO hookonce.handed_secrets (source, secret) VALUES ('stripe', 'mine')",
        "UPDATE hookonce.ledger SET window_key = DEFAULT",
    ),
    Task.DESK: (
        CLAIM,
        "UPDATE hookonce.queue SET token = NULL",
        "INSERT INTO hookonce.guards DEFAULT VALUES",
        "UPDATE hookonce.audit SET who = 'nobody'",
        "UPDATE hookonce.events SET source = 'other'",
        "INSERT INTO hookonce.issues (id, handler, title, first_release) VALUES ('1', 'h', 't', '')",
        "UPDATE hookonce.breakers SET opened_at = now()",
    ),
    Task.DJANGO: (
        *(f"SELECT FROM hookonce.{table}" for table in RIGHTS),
        CLAIM,
        OUTCOME,
        "DELETE FROM hookonce.queue",
        "SELECT hookonce.make_partition(current_date)",
    ),
    Task.READER: (
        "SELECT * FROM hookonce.events",
        "SELECT token FROM hookonce.queue",
        "SELECT result FROM hookonce.run_states",
        "SELECT FROM hookonce.bodies",
        "DELETE FROM hookonce.queue",
        OUTCOME,
    ),
}
"""What each role may not do, by its task."""
NOBODYS = (
    "CREATE TABLE hookonce.mine (n int)",
    "DROP TABLE hookonce.queue",
    "TRUNCATE hookonce.runs",
    "ALTER TABLE hookonce.events ADD COLUMN mine int",
    "DROP TABLE hookonce.bodies_{today}",
)
COLUMNS_READ_BY = """
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped
WHERE c.relnamespace = 'hookonce'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
      AND has_column_privilege(%s, c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES')
"""
PROMISED = (event_states, events, failures, queue, run_states, runs)


def today():
    return datetime.now(UTC).date()


@pytest.fixture
def given(administer, database_url):
    """A role for each task, with the rights of that; what connects as one."""
    mark = uuid.uuid4().hex[:8]
    named = {task: f'in"{task}_{mark}' for task in Task}
    for name in named.values():
        administer(("CREATE ROLE {}", name))
    with psycopg.connect(database_url, autocommit=True) as owner:
        roles.apply(owner, named)
        owner.execute("CREATE TABLE public.effects (event text)")
        owner.execute("GRANT ALL ON public.effects TO PUBLIC")
        yield SimpleNamespace(
            owner=owner, named=named, url=lambda task: as_role(database_url, named[task]), base=database_url
        )
        for name in named.values():
            owner.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
    for name in named.values():
        administer(("DROP ROLE {}", name))


def as_role(url, name):
    separator = "&" if "?" in url else "?"
    return f"{url}{separator}options=-c%20role%3D{name.replace(chr(34), '%22')}"


def settings_of(database_url, redis_url):
    return load_settings(
        {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "HOOKONCE_CONFIG": "/dev/null"}
    )


def worked(given, redis_url, function, *, attempts=3):
    registry = Registry()
    options = {"attempts": attempts, "backoff": (timedelta(0), timedelta(0)), "timeout": timedelta(seconds=5)}
    registry.add(Handler(function.__name__, "stripe", "*", function, **options))
    drain = SingleSlot(settings_of(given.url(Task.WORKER), redis_url), registry)
    try:
        drain.run_due(())
    finally:
        drain.close()


RELATIONS = """
SELECT relname FROM pg_class WHERE relnamespace = 'hookonce'::regnamespace AND relkind IN ('r', 'p', 'v')
    AND NOT relispartition
"""


def test_every_table_and_view_has_its_rights_said(database_url):
    with psycopg.connect(database_url) as connection:
        names = {name for (name,) in connection.execute(RELATIONS)}

    assert set(RIGHTS) == names


@pytest.mark.parametrize(
    ("task", "statement"),
    [(task, statement) for task in Task for statement in (*OTHERS[task], *NOBODYS)],
)
def test_role_can_not_do_the_work_of_others(given, task, statement):
    with (
        connections.connect(given.url(task)) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement.replace("{today}", f"{today():%Y%m%d}"))


def test_reader_reads_the_promised_columns_and_no_other(given):
    readable = given.owner.execute(COLUMNS_READ_BY, [given.named[Task.READER]]).fetchall()

    promised = {(table.name, column.name) for table in PROMISED for column in table.c}
    assert sorted(readable) == sorted(promised)


def test_reader_of_new_tables_is_among_the_roles_to_be_granted_again(given):
    name = given.named[Task.READER]
    given.owner.execute(
        sql.SQL("DROP OWNED BY {}").format(
            sql.SQL(", ").join(sql.Identifier(each) for each in given.named.values())
        )
    )
    roles.apply(given.owner, {Task.READER: name})

    given.owner.execute("DROP TABLE hookonce.watching; CREATE TABLE hookonce.watching ()")

    assert roles.behind(given.owner) == [name]


@pytest.mark.parametrize(("task", "status"), [(Task.RECEIVER, 503), (Task.DESK, 200)])
def test_api_is_the_desks_and_says_so_to_a_receiver(given, redis_url, task, status):
    token = api_tokens.create(given.owner, "ci", [Scope.READ], None, "bob")
    with given_app(settings_of(given.url(task), redis_url)) as app:
        client = app.test_client()

        answer = client.get("/api/v1/events", headers={"Authorization": f"Bearer {token}"})

        assert answer.status_code == status
        assert [client.get(path).status_code for path in ("/readyz", "/metrics")] == [200, 200]


def test_what_a_receiver_takes_in_a_worker_runs(given, redis_url):
    with connections.connect(given.url(Task.RECEIVER)) as connection:
        store(connection, [new_event("evt_1"), new_event("evt_2", unreadable="bad_body: it is none")])

    worked(given, redis_url, write_effect)

    assert given.owner.execute("SELECT event FROM public.effects").fetchall() == [("evt_1",)]
    assert statuses(given) == {"evt_1": "done", "evt_2": "dead"}


def test_worker_keeps_why_a_run_failed(given, redis_url):
    with connections.connect(given.url(Task.RECEIVER)) as connection:
        store(connection, [new_event("evt_1")])

    worked(given, redis_url, fails, attempts=1)

    assert statuses(given) == {"evt_1": "dead"}
    assert given.owner.execute("SELECT count(*) FROM hookonce.failures").fetchone() == (1,)


def test_desk_pauses_and_makes_tokens_and_is_audited(given):
    with connections.connect(given.url(Task.DESK)) as connection:
        assert pauses.pause(connection, "source", "stripe", "bob")
        assert api_tokens.create(connection, "ci", ["read"], None, "bob")

        assert [change.who for change in audit_log.latest(connection, 9)] == ["bob", "bob"]


def test_desk_erases_what_has_died_by_what_it_holds(given):
    found = store(given.owner, [new_event("evt_1", b"ada", account="ada")])["stripe", "evt_1"]
    put_into_state(given.owner, found.id, "dead", [("h", "dead", 1)])

    with connections.connect(given.url(Task.DESK)) as connection:
        how = {"who": "bob", "before": None, "budget": timedelta(seconds=9)}
        done = erasure.step(connection, OFF, Filter(), Needle("ada"), **how)

    assert (done.erased, statuses(given)) == ([found.id], {"evt_1": "discarded"})


@pytest.mark.parametrize("task", [Task.RECEIVER, Task.WORKER, Task.DESK])
def test_role_that_owns_nothing_makes_the_days_that_are_missing(given, task):
    day = today() + timedelta(days=400)
    with connections.connect(given.url(task)) as connection:
        partitions.make_partition(connection, day)
        partitions.make_partition(connection, day)

    assert day in partitions.days(given.owner)
    assert partitions.days(given.owner).keys() >= {today()}
    (owners,) = given.owner.execute(
        "SELECT count(DISTINCT relowner) FROM pg_class WHERE relname LIKE 'bodies%' AND relkind IN ('r', 'p')"
    ).fetchone()
    assert owners == 1


def test_day_made_by_a_function_has_the_bounds_of_its_day(given):
    bounds = "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = %s"
    name = f"bodies_{today():%Y%m%d}"
    (before,) = given.owner.execute(bounds, [name]).fetchone()
    given.owner.execute(f"DROP TABLE hookonce.{name}")

    with psycopg.connect(given.url(Task.WORKER) + "%20-c%20timezone%3DAsia/Tokyo") as connection:
        partitions.make_partition(connection, today())

    assert given.owner.execute(bounds, [name]).fetchone() == (before,)


def test_worker_drops_a_day_that_nothing_needs(given):
    with connections.connect(given.url(Task.WORKER)) as connection:
        assert partitions.drop_day(connection, today()) is DropResult.DROPPED

    assert today() not in partitions.days(given.owner)


def test_function_drops_no_day_whose_events_are_yet_to_be_handled(given):
    with connections.connect(given.url(Task.RECEIVER)) as connection:
        store(connection, [new_event("evt_1")])

    with (
        connections.connect(given.url(Task.WORKER)) as connection,
        pytest.raises(psycopg.errors.ObjectInUse),
    ):
        connection.execute("SELECT hookonce.drop_partition(%s)", [today()])


def test_functions_are_nobodys_who_was_not_given_them(given):
    rows = given.owner.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'hookonce'::regnamespace AND prosecdef "
        "AND (proacl IS NULL OR array_to_string(proacl, ' ') ~ '(^| )=X' "
        "OR NOT array_to_string(proconfig, ' ') LIKE 'search_path=pg_catalog, pg_temp%')"
    ).fetchall()

    assert rows == []


@pytest.mark.parametrize(
    "named",
    [{"token": uuid.uuid4()}, {"n": 1}, {"event": 0}],
)
def test_function_ends_no_run_but_the_one_under_its_token(given, named):
    row, token = claimed(given)
    with psycopg.connect(given.url(Task.DJANGO)) as connection:
        values = {"event": row, "n": 0, "token": token}
        connection.execute(GUARD)

        with pytest.raises(psycopg.errors.NotNullViolation):
            connection.execute(END, {**values, **named})

    assert statuses(given) == {"evt_1": "running"}


def test_function_ends_the_run_in_the_transaction_that_was_guarded(given):
    row, token = claimed(given, keep_body=False)
    with psycopg.connect(given.url(Task.DJANGO)) as connection:
        values = {"event": row, "n": 0, "token": token}
        connection.execute(GUARD)
        connection.execute(END, values)

    assert statuses(given) == {"evt_1": "done"}
    assert given.owner.execute(
        "SELECT (SELECT count(*) FROM hookonce.guards), (SELECT count(*) FROM hookonce.bodies)"
    ).fetchone() == (0, 0)


def test_function_ends_no_run_in_a_transaction_that_was_not_guarded(given):
    row, token = claimed(given)
    with (
        psycopg.connect(given.url(Task.DJANGO)) as connection,
        pytest.raises(psycopg.errors.InvalidTransactionTermination),
    ):
        connection.execute(END, {"event": row, "n": 0, "token": token})

    assert statuses(given) == {"evt_1": "running"}


def test_rights_that_a_role_had_besides_are_taken_away(given):
    name = sql.Identifier(given.named[Task.RECEIVER])
    given.owner.execute(sql.SQL("GRANT ALL ON hookonce.audit, hookonce.events TO {}").format(name))

    roles.apply(given.owner, given.named)

    assert not can(given, Task.RECEIVER, "hookonce.audit", "SELECT")
    assert not can(given, Task.RECEIVER, "hookonce.events", "DELETE")
    assert can(given, Task.RECEIVER, "hookonce.events", "INSERT")


def test_role_with_two_tasks_has_the_rights_of_both(given):
    name = given.named[Task.RECEIVER]

    roles.apply(given.owner, {Task.RECEIVER: name, Task.DESK: name})

    with connections.connect(given.url(Task.RECEIVER)) as connection:
        assert [roles.lacking(connection, task) for task in (Task.RECEIVER, Task.DESK)] == [[], []]
        assert ("hookonce.claims", "INSERT") in roles.lacking(connection, Task.WORKER)


@pytest.mark.parametrize(("place", "bodies"), [("inbox", "inbox.bodies"), ("user", '"user".bodies')])
def test_rights_are_looked_for_in_the_schema_that_is_configured(given, place, bodies):
    given.owner.execute(sql.SQL("ALTER SCHEMA hookonce RENAME TO {}").format(sql.Identifier(place)))

    with connections.connect(with_schema(given.url(Task.RECEIVER), place)) as connection:
        assert roles.lacking(connection, Task.RECEIVER) == []
        assert (bodies, "SELECT") in roles.lacking(connection, Task.WORKER)


def test_roles_without_rights_on_a_new_table_are_found_in_any_schema(given):
    given.owner.execute("ALTER SCHEMA hookonce RENAME TO inbox")
    given.owner.execute("DROP TABLE inbox.watching; CREATE TABLE inbox.watching ()")

    with connections.connect(with_schema(given.base, "inbox")) as connection:
        assert roles.behind(connection) == sorted(set(given.named.values()) - {given.named[Task.DJANGO]})


def test_ledger_is_given_to_the_role_that_upgrades(given):
    name = given.named[Task.DJANGO]
    url = as_role(given.base, name)

    roles.apply(given.owner, {Task.WORKER: given.named[Task.WORKER]}, name)

    assert migrate.upgrade(url) == migrate.upgrade(given.base)
    with connections.connect(url) as connection:
        partitions.make_partition(connection, today() + timedelta(days=400))
        connection.execute("CREATE TABLE hookonce.later (n int)")
    with connections.connect(given.url(Task.WORKER)) as connection:
        partitions.make_partition(connection, today() + timedelta(days=401))
    given.owner.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(sql.Identifier(name)))


@contextmanager
def given_app(settings):
    app = create_app(settings)
    try:
        yield app
    finally:
        app.extensions["hookonce"].close()


def claimed(given, **changes):
    answers = store(given.owner, [new_event("evt_1", **changes)])
    token = uuid.uuid4()
    given.owner.execute("UPDATE hookonce.queue SET handler = 'h', token = %s", [token])
    return next(iter(answers.values())).id, token


def write_effect(event, tx):
    tx.execute(text("INSERT INTO public.effects (event) VALUES (:event)"), {"event": event.event_id})


def fails(event, tx):  # noqa: ARG001  a handler's
    raise ValueError("no")


def can(given, task, table, right):
    row = given.owner.execute(
        "SELECT has_table_privilege(%s, %s, %s)", [given.named[task], table, right]
    ).fetchone()
    return row[0]


def statuses(given):
    return dict(given.owner.execute("SELECT event_id, status FROM hookonce.event_states").fetchall())
