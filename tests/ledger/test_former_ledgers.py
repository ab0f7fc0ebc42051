"""Ledgers of before are taken over: what an operator saw is seen afterwards, whoever uses or cuts it meanwhile."""

import os
import uuid
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module

import psycopg
import pytest
from psycopg import sql

from hookonce.receiver.cli import main
from hookonce.receiver.config.server_urls import libpq_url, with_schema
from hookonce.receiver.ledger.database import former_tables, migrate, migrations, upgrade_plan
from hookonce.receiver.ledger.database.live_upgrade import Patience
from hookonce.receiver.ledger.database.schema_version import REVISION
from tests.support import former_ledgers
from tests.support.event_sums import differences
from tests.support.pooler import PGBOUNCER, pooling
from tests.support.waiting import until

PATIENCE = Patience(
    lock=timedelta(milliseconds=100), pause=timedelta(milliseconds=20), leases=timedelta(milliseconds=300)
)
KILLED = 17
REVISIONS = ["0003", "0016", "0020"]
EVENTS_BEFORE = "SELECT event_id, status, deliveries FROM {}.events"
RUNS_BEFORE = """
SELECT e.event_id, r.handler, r.status, r.attempts, r.cycle, to_jsonb(r) ->> 'parked', to_jsonb(e) ->> 'parked'
FROM {0}.runs r JOIN {0}.events e ON e.id = r.event
"""
EVENTS = "SELECT event_id, status, deliveries FROM hookonce.event_states"
RUNS = """
SELECT e.event_id, r.handler, r.status, r.attempts, r.cycle, r.waits
FROM hookonce.run_states r JOIN hookonce.events e ON e.id = r.event
"""
ENDED_BEFORE = """
SELECT event, handler, started_at, finished_at, result::text, {sealed} FROM {place}.runs
WHERE status IN ('done', 'dead') ORDER BY event, handler
"""
ENDED = """
SELECT event, handler, started_at, finished_at, result::text, {sealed} FROM hookonce.runs
WHERE handler <> '' AND event <> ALL(%s) ORDER BY event, handler
"""
SHAPE = """
SELECT 'column', c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' '
       || coalesce(pg_get_expr(d.adbin, d.adrelid), '') || ' ' || a.attidentity::text || ' ' || a.attcollation
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'hookonce'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relname !~ '_[0-9]{8}$'
UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'hookonce'::regnamespace AND conname !~ '_[0-9]{8}_'
UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes
WHERE schemaname = 'hookonce' AND tablename !~ '_[0-9]{8}$'
UNION ALL SELECT 'options', relname, reloptions::text FROM pg_class
WHERE relnamespace = 'hookonce'::regnamespace AND reloptions IS NOT NULL
UNION ALL SELECT 'trigger', tgname, '' FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT 'function', proname, '' FROM pg_proc WHERE pronamespace = 'hookonce'::regnamespace
"""
OLD_INSERT = """
INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed, status, due_at)
VALUES ('stripe', 'stripe', %s, 'a', '\\x00', true, %s, CASE WHEN %s = 'received' THEN now() END) RETURNING id
"""
OLD_END = """
WITH followed AS (UPDATE hookonce.events SET status = 'done', due_at = NULL, parked = NULL WHERE id = %(event)s)
UPDATE hookonce.runs SET status = 'done', due_at = NULL, finished_at = now(), token = NULL, lease_until = NULL
WHERE event = %(event)s AND token IS NOT NULL AND status = 'running'
"""
OLD_CLAIM = """
WITH due AS (SELECT id FROM hookonce.events WHERE id = %(event)s AND due_at IS NOT NULL FOR UPDATE), followed AS (
    UPDATE hookonce.events SET status = 'running', due_at = now() + interval '1 minute'
    WHERE id IN (SELECT id FROM due))
INSERT INTO hookonce.runs (event, handler, status, attempts, token, lease_until, due_at, started_at)
SELECT id, 'credit', 'running', 1, gen_random_uuid(), now() + interval '1 minute', now() + interval '1 minute', now()
FROM due
"""


def seen_before(url, place="hookonce"):
    """What an operator sees of events and of runs in a ledger of before."""
    with psycopg.connect(libpq_url(url)) as connection:
        return [connection.execute(each.format(place)).fetchall() for each in (EVENTS_BEFORE, RUNS_BEFORE)]


def seen(url):
    with psycopg.connect(libpq_url(url)) as connection:
        return [sorted(connection.execute(each).fetchall(), key=str) for each in (EVENTS, RUNS)]


def expected(revision, before):
    """What is to be seen afterwards: the same, but for what `former_ledgers` says."""
    kept = {each.name: each for each in former_ledgers.of(revision)}
    events = [
        (name, kept[name].after.get("status", status), deliveries) for name, status, deliveries in before[0]
    ]
    runs = []
    for name, handler, status, attempts, cycle, parked, of_event in before[1]:
        after = next(run.after for run in kept[name].runs if run.handler == handler)
        waits = parked or ("source:stripe" if of_event == "source" else None)
        found = {"status": status, "attempts": attempts, "cycle": cycle, "waits": waits} | after
        runs.append((name, handler, *found.values()))
    return [sorted(events, key=str), sorted(runs, key=str)]


@pytest.fixture(params=REVISIONS)
def revision(request):
    return request.param


@pytest.fixture
def former(empty_database, revision):
    """The URL of a database with a ledger of a revision; whoever upgrades it."""
    former_ledgers.make(empty_database, revision)
    return empty_database


@pytest.fixture
def last(empty_database):
    """The URL of a database with a ledger of the last revision before the queue."""
    return former_ledgers.make(empty_database, "0020")


@contextmanager
def connected(url, name="hookonce receiver"):
    with psycopg.connect(url, autocommit=True, application_name=name) as connection:
        yield connection


def upgrade(url, at=None, do=lambda: None, **options):
    """Upgrade; do something at the beginning of a step; return the steps, and why one is postponed."""
    steps = []

    def say(progress):
        steps.append(progress)
        if progress.step == at:
            do()

    assert migrate.upgrade(url, PATIENCE, say, **options) == REVISION
    return [each.step for each in steps], next((each.why for each in steps if each.why), None)


def run_of(url, name):
    return [row[1:] for row in seen(url)[1] if row[0] == name]


def status_of(url, name):
    return next((status for event, status, _ in seen(url)[0] if event == name), None)


def test_operator_sees_what_was_seen_before(former, revision):
    before = seen_before(former, "public" if revision == "0003" else "hookonce")

    upgrade(former)

    assert seen(former) == expected(revision, before)


def test_upgrade_mends_sums_that_were_wrong(last):
    with connected(last) as connection:
        connection.execute(
            "INSERT INTO hookonce.event_counts (source, what, count) VALUES ('stripe', 'events', 5)"
        )

    upgrade(last)

    with connected(last) as connection:
        assert differences(connection) == {}


def test_results_and_times_of_ended_runs_are_kept(former, revision):
    place, sealed = ("public", "NULL, NULL") if revision == "0003" else ("hookonce", "sealed_result, key_id")
    with psycopg.connect(former) as connection:
        before = connection.execute(ENDED_BEFORE.format(place=place, sealed=sealed)).fetchall()

    upgrade(former)

    buried = "SELECT id FROM hookonce.events WHERE event_id = 'committed by itself'"
    with psycopg.connect(former) as connection:
        others = [[number for (number,) in connection.execute(buried)]]
        assert connection.execute(ENDED.format(sealed=sealed), others).fetchall() == before


def test_tables_have_the_shape_of_a_new_ledger(former, empty_databases):
    new = empty_databases()
    migrate.upgrade(new)

    upgrade(former)

    assert shape(former) == shape(new)


@pytest.fixture
def empty_databases(administer, servers):
    from tests.conftest import creating, database, dropping  # noqa: PLC0415

    made = []

    def make(template="template1"):
        made.append(f"hookonce_former_{uuid.uuid4().hex[:12]}")
        administer(*creating(made[-1], template))
        return database(servers, made[-1])

    yield make
    administer(*dropping(made))


def shape(url):
    with psycopg.connect(url) as connection:
        return sorted(connection.execute(SHAPE).fetchall(), key=str)


def test_ledger_under_another_name_is_taken_over_too(empty_database):
    url = former_ledgers.make(with_schema(empty_database, "inbox"), "0016")

    migrate.upgrade(url, PATIENCE)

    with psycopg.connect(empty_database) as connection:
        [(number,)] = connection.execute("SELECT count(*) FROM inbox.event_states")
        left = connection.execute(
            "SELECT to_regnamespace('hookonce'), to_regclass('inbox.former_runs')"
        ).fetchone()
    assert number == len(former_ledgers.of("0016"))
    assert left == (None, None)


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_ledger_is_taken_over_through_a_pooler(last, data_directory):
    before = seen_before(last)

    with connected(last, "hookonce worker"), pooling(last, data_directory) as url:
        migrate.upgrade(url, PATIENCE)

    assert seen(last) == expected("0020", before)


def change(connection):
    """Do what receivers and workers of before do, to events that were copied already and to new ones."""
    numbers = dict(connection.execute("SELECT event_id, id FROM hookonce.events").fetchall())
    connection.execute(OLD_END, {"event": numbers["runs"]})
    connection.execute(OLD_CLAIM, {"event": numbers["received"]})
    reset = "UPDATE hookonce.runs SET status = 'waiting', attempts = 0, cycle = cycle + 1, due_at = now()"
    connection.execute(f"{reset} WHERE event = %s", [numbers["dead"]])
    connection.execute(
        "UPDATE hookonce.events SET status = 'waiting', due_at = now() WHERE event_id = 'dead'"
    )
    connection.execute(
        "UPDATE hookonce.events SET status = 'received', due_at = now() WHERE event_id = 'ignored'"
    )
    connection.execute("UPDATE hookonce.events SET deliveries = deliveries + 2 WHERE event_id = 'repeated'")
    connection.execute("DELETE FROM hookonce.events WHERE event_id = 'done'")
    for name, status in (("new", "received"), ("new, held", "held"), ("new, unreadable", "dead")):
        connection.execute(OLD_INSERT, [name, status, status])


@pytest.mark.parametrize("step", ["copy", "swap"])
def test_what_changes_while_it_is_copied_is_copied_as_it_is_then(last, step):
    with connected(last, "hookonce worker") as theirs:
        upgrade(last, step, once(lambda: change(theirs)))

    status = {name: (found, deliveries) for name, found, deliveries in seen(last)[0]}
    assert run_of(last, "runs") == [("credit", "done", 2, 1, None)]
    assert run_of(last, "received") == [("credit", "waiting", 0, 1, "suspect")]
    assert run_of(last, "dead") == [("credit", "waiting", 0, 2, None)]
    assert (status["ignored"], status["repeated"]) == (("received", 1), ("done", 7))
    assert "done" not in status
    assert [status[f"new{kind}"][0] for kind in ("", ", held", ", unreadable")] == [
        "received",
        "held",
        "dead",
    ]
    assert "lost" not in {found for found, _ in status.values()}


def once(do):
    left = [do]
    return lambda: left.pop()() if left else None


def test_run_that_ends_while_it_is_waited_for_is_done(last):
    ended = []

    def end(driver, events=None):
        found = right(driver, events)
        if not ended:
            ended.append(found)
            with psycopg.connect(last) as theirs:
                theirs.execute(OLD_END, {"event": min(found)})
        return found

    right = former_tables.leased
    with pytest.MonkeyPatch.context() as patch, connected(last, "hookonce worker"):
        patch.setattr(former_tables, "leased", end)
        upgrade(last)

    assert status_of(last, "runs") == "done"


def test_old_receiver_goes_on_after_the_swap(last):
    with connected(last) as theirs:
        steps, why = upgrade(last)
        stored = [
            theirs.execute(OLD_INSERT, [f"late, {each}", each, each]).fetchone()[0]
            for each in ("received", "held", "dead")
        ]
        theirs.execute("UPDATE hookonce.events SET deliveries = deliveries + 1 WHERE id = ANY(%s)", [stored])

        found = theirs.execute(f"{EVENTS} WHERE id = ANY(%s) ORDER BY id", [stored]).fetchall()

    assert "contract" not in steps
    assert "connected since before" in why
    assert found == [(f"late, {status}", status, 2) for status in ("received", "held", "dead")]


def test_new_receiver_stores_beside_it(last):
    with connected(last):
        upgrade(last)
        with psycopg.connect(last) as ours:
            ours.execute(
                "WITH new AS (INSERT INTO hookonce.events (source, provider, event_id, type, fingerprint, id_is_signed)"
                " VALUES ('s', 's', 'ours', 'a', '', true) RETURNING id, received_at, source, type)"
                " INSERT INTO hookonce.queue (event, received_at, source, type, due_at)"
                " SELECT id, received_at, source, type, now() FROM new"
            )

    assert status_of(last, "ours") == "received"


@pytest.mark.parametrize(
    "statement",
    [
        OLD_END,
        OLD_CLAIM,
        "UPDATE hookonce.events SET status = 'received', due_at = now() WHERE id = %(event)s",
        "UPDATE hookonce.runs SET status = 'waiting', due_at = now() WHERE event = %(event)s",
        "INSERT INTO hookonce.marks (event, handler, token) VALUES (%(event)s, 'credit', gen_random_uuid())",
        "SELECT FROM hookonce.events WHERE due_at <= now() AND parked IS NULL AND id = %(event)s",
    ],
)
def test_old_worker_can_do_nothing_after_the_swap(last, statement):
    with connected(last, "hookonce worker") as theirs:
        upgrade(last)
        before = seen(last)
        [number] = theirs.execute("SELECT id FROM hookonce.events WHERE event_id = 'runs'").fetchone()

        with pytest.raises((psycopg.errors.RaiseException, psycopg.errors.UndefinedColumn)):
            theirs.execute(statement, {"event": number})

    assert seen(last) == before


def test_old_retention_takes_nothing_that_is_open(last):
    with connected(last, "hookonce worker") as theirs:
        upgrade(last)
        # A replay by the new version, of which the former columns know nothing.
        theirs.execute(
            "INSERT INTO hookonce.queue (event, received_at, source, type, handler, due_at)"
            " SELECT id, received_at, source, type, 'credit', now() FROM hookonce.events WHERE event_id = 'dead'"
        )
        theirs.execute("DELETE FROM hookonce.events WHERE status IN ('done', 'dead', 'ignored')")

        orphans = theirs.execute(
            "SELECT count(*) FROM hookonce.runs WHERE event NOT IN (SELECT id FROM hookonce.events)"
        ).fetchone()

    assert status_of(last, "dead") == "waiting"
    assert status_of(last, "ignored") is None
    assert orphans == (0,)


def test_rest_is_dropped_when_the_old_processes_have_gone(last):
    with connected(last):
        upgrade(last)
    with psycopg.connect(last, autocommit=True) as watch:
        until_gone(watch)

    steps, _ = upgrade(last)

    assert steps == ["contract"]
    with psycopg.connect(last) as connection, pytest.raises(psycopg.errors.UndefinedColumn):
        connection.execute("SELECT status FROM hookonce.events")


def until_gone(connection):
    until(lambda: former_tables.sessions(connection) == 0, what="the end of the old sessions")


def test_rest_stays_while_an_old_receiver_stores(last):
    with connected(last):
        upgrade(last)
    with psycopg.connect(last, autocommit=True) as theirs:
        theirs.execute(OLD_INSERT, ["late", "received", "received"])
        until_gone(theirs)

    steps, why = upgrade(last)

    assert steps == ["postponed"]
    assert "was stored by a receiver of before" in why
    assert upgrade(last, finish=True)[0] == ["contract"]


def test_who_may_read_runs_may_read_what_replaces_them_and_write_nothing(last, administer):
    role = f"shop_{uuid.uuid4().hex[:12]}"
    administer(("CREATE ROLE {}", role))
    with psycopg.connect(last, autocommit=True) as connection:
        name = sql.Identifier(role)
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA hookonce TO {}").format(name))
        connection.execute(
            sql.SQL("GRANT SELECT, UPDATE ON hookonce.events, hookonce.runs TO {}").format(name)
        )
        upgrade(last)
        connection.execute(sql.SQL("SET ROLE {}").format(name))
        connection.execute(
            "SELECT FROM hookonce.event_states, hookonce.run_states, hookonce.queue, hookonce.runs"
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM hookonce.queue")
        connection.execute(sql.SQL("RESET ROLE; DROP OWNED BY {0}; DROP ROLE {0}").format(name))


@pytest.mark.parametrize("step", ["expand", "copy", "swap", "contract"])
def test_upgrade_that_is_killed_at_a_step_is_done_by_the_next(last, step):
    before = seen_before(last)

    assert code_of(lambda: upgrade(last, step, lambda: os._exit(KILLED))) == KILLED
    upgrade(last)

    assert seen(last) == expected("0020", before)


@pytest.mark.long
def test_upgrade_that_is_killed_at_any_statement_is_done_by_the_next(last, empty_databases):
    before, step, code = seen_before(last), 0, KILLED
    template = psycopg.conninfo.conninfo_to_dict(last)["dbname"]
    while code == KILLED:
        step += 1
        url = empty_databases(template)
        code = code_of(lambda: upgrade_until(url, step))  # noqa: B023  called at once
        upgrade(url)
        assert seen(url) == expected("0020", before), f"cut at statement {step}"

    assert code == 0
    assert step > len(former_ledgers.EVENTS)


def code_of(do):
    """Return how a process ends that does something."""
    child = os.fork()
    if not child:
        try:
            do()
        except BaseException:  # noqa: BLE001  the parent looks at the ledger
            os._exit(2)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def upgrade_until(url, step):
    """Upgrade in this process, which ends without ado at a statement."""
    right, count = psycopg.Cursor.execute, 0

    def execute(self, *args, **options):
        nonlocal count
        count += 1
        if count == step:
            os._exit(KILLED)
        return right(self, *args, **options)

    psycopg.Cursor.execute = execute
    migrate.upgrade(url, PATIENCE)


def test_two_upgrades_at_once_are_one(last):
    def other():
        assert code_of(lambda: os.fork() or upgrade(last)) == 0

    upgrade(last, "swap", once(other))

    assert status_of(last, "done") == "done"


def test_ledger_can_not_be_taken_back():
    revision = import_module(f"{migrations.__name__}.versions.0021_queue")

    with pytest.raises(NotImplementedError, match="restore a dump of before"):
        revision.downgrade()


@pytest.mark.parametrize(("kind", "steps"), [("new", 1), ("0003", 5), ("0016", 5), ("0020", 4)])
def test_plan_names_each_step_and_changes_nothing(empty_database, kind, steps):
    if kind != "new":
        former_ledgers.make(empty_database, kind)
    before = everything(empty_database)

    found = upgrade_plan.plan(empty_database)

    assert (found.revision, found.reached) == (None if kind == "new" else kind, REVISION)
    assert len(found.steps) == steps
    assert all(step.locks for step in found.steps)
    assert everything(empty_database) == before
    migrate.upgrade(empty_database, PATIENCE)
    assert upgrade_plan.plan(empty_database).steps == []


def everything(url):
    with psycopg.connect(url) as connection:
        return sorted(connection.execute("SELECT oid::regclass::text FROM pg_class").fetchall())


def test_plan_of_an_upgrade_that_was_cut_says_what_is_left(last):
    code_of(lambda: upgrade(last, "swap", lambda: os._exit(KILLED)))

    found = upgrade_plan.plan(last)

    assert [step.does.split()[0] for step in found.steps] == ["copy", "copy", "drop"]
    assert "up to number" in found.steps[0].does


def test_plan_says_that_old_sessions_are_connected(last):
    with connected(last):
        before = upgrade_plan.plan(last).steps[-1]
        upgrade(last)
        [after] = upgrade_plan.plan(last).steps

    assert "1 sessions of hookonce's are connected" in before.does
    assert "are connected since before the upgrade" in after.does


def test_command_tells_the_plan_and_each_step(last, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("DATABASE_URL", last)
    monkeypatch.chdir(tmp_path)
    told = []
    for options in (["--plan"], [], ["--plan"]):
        monkeypatch.setattr("sys.argv", ["hookonce", "db", "upgrade", *options])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in {0, None}
        told.append(capsys.readouterr())

    assert told[0].out.startswith(f"the schema is at 0020; an upgrade would bring it to {REVISION}\n1. ")
    assert told[1].err.splitlines()[:2] == ["making the new tables", "copied: 100 %"]
    assert f"the schema is at {REVISION}" in told[1].err
    assert "nothing to do" in told[2].out
