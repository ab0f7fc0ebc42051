"""Moves a ledger of before 0021 into the tables of today, in steps that may be cut anywhere and done again.

In those ledgers `events` has a status and a due time, and `runs` holds what is open as well as what has ended. Each
step is one transaction. `expand` makes the new tables, and has triggers note which events change. `copy_range` copies
what is there, a range of events at a time; `catch_up` copies anew what was noted. Until then workers of before know
nothing of it. `swap` locks `events` and `runs`, copies the rest and gives the tables their names, and `contract` drops
what is kept for receivers of before: these go on inserting events with a status, of which a trigger makes rows of the
queue.

What a worker of before writes after the swap is refused by a trigger or for want of a column, and rolled back with what
its handler wrote, so no attempt is charged there. A run that was under way waits for the end of its former lease, and
is run alone then.

    upgrade_changes (event)                 events that have changed since they were copied
    upgrade_progress (copied, until_event)  one row: how far the copy has come, of how much; when the swap was

docs/decisions/0035 says why it is done so.
"""

from collections.abc import Sequence
from typing import Any

import psycopg

RANGE = 10_000
"""Events that are copied in one transaction."""
NOTED = 5_000
"""Notes that are followed in one transaction."""
BACK = 10_000
"""The newest events, among which one is looked for that a receiver of before has stored."""
BELIEVED_GONE_AFTER = "5 minutes"

QUEUE = """
CREATE TABLE hookonce.queue (
    event bigint NOT NULL,
    n smallint NOT NULL DEFAULT 0,
    received_at timestamptz NOT NULL,
    source text COLLATE "C" NOT NULL,
    type text NOT NULL,
    handler text COLLATE "C",
    cycle integer NOT NULL DEFAULT 1,
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL,
    waits text COLLATE "C",
    waiting_handler text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN waits IS NOT NULL THEN handler END) STORED,
    slot_at timestamptz,
    schedule text,
    token uuid,
    CONSTRAINT queue_pkey PRIMARY KEY (event, n)
) WITH (fillfactor = 40, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX queue_due ON hookonce.queue (due_at) WHERE waits IS NULL;
CREATE INDEX queue_waits ON hookonce.queue (waits, waiting_handler, event) WHERE waits IS NOT NULL;
CREATE TABLE hookonce.claims (
    token uuid NOT NULL,
    lease_until timestamptz NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),
    events bigint[] NOT NULL,
    places smallint[] NOT NULL,
    slots integer NOT NULL DEFAULT 1,
    is_alone boolean NOT NULL DEFAULT false,
    started_at timestamptz,
    handler text COLLATE "C",
    CONSTRAINT claims_pkey PRIMARY KEY (token)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
CREATE TABLE hookonce.redeliveries (
    event bigint NOT NULL CONSTRAINT redeliveries_pkey PRIMARY KEY
        CONSTRAINT redeliveries_event_fkey REFERENCES hookonce.events (id) ON DELETE CASCADE,
    count integer NOT NULL
);
CREATE TABLE hookonce.next_runs (
    event bigint NOT NULL,
    handler text COLLATE "C" NOT NULL,
    cycle integer NOT NULL,
    status text NOT NULL,
    is_last boolean NOT NULL DEFAULT true,
    attempts integer NOT NULL,
    started_at timestamptz,
    finished_at timestamptz NOT NULL,
    result json,
    sealed_result bytea,
    key_id text,
    CONSTRAINT next_runs_pkey PRIMARY KEY (event, handler, cycle)
) WITH (autovacuum_enabled = false);
CREATE INDEX next_runs_dead ON hookonce.next_runs (event) WHERE status = 'dead' AND is_last;
CREATE INDEX next_runs_ignored ON hookonce.next_runs (event) WHERE status = 'ignored' AND is_last;
CREATE INDEX next_runs_finished ON hookonce.next_runs USING brin (finished_at) WITH (autosummarize = on);
"""

# With the rights of who upgrades: whose change is noted need not have any on the new tables.
_NOTES = """
CREATE TABLE hookonce.upgrade_changes (event bigint NOT NULL)
    WITH (autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE hookonce.upgrade_progress (
    copied bigint NOT NULL,
    until_event bigint NOT NULL,
    began_at timestamptz NOT NULL DEFAULT now(),
    swapped_at timestamptz
);
CREATE FUNCTION hookonce.note_new_event() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
    'BEGIN INSERT INTO hookonce.upgrade_changes VALUES (NEW.id); RETURN NULL; END';
CREATE FUNCTION hookonce.note_former_event() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
    'BEGIN INSERT INTO hookonce.upgrade_changes VALUES (OLD.id); RETURN NULL; END';
CREATE FUNCTION hookonce.note_run() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
    'BEGIN INSERT INTO hookonce.upgrade_changes
           VALUES (CASE TG_OP WHEN ''DELETE'' THEN OLD.event ELSE NEW.event END); RETURN NULL; END';
CREATE TRIGGER note_new AFTER INSERT ON hookonce.events FOR EACH ROW EXECUTE FUNCTION hookonce.note_new_event();
CREATE TRIGGER note_changed AFTER UPDATE OF status, due_at, parked, deliveries OR DELETE ON hookonce.events
    FOR EACH ROW EXECUTE FUNCTION hookonce.note_former_event();
CREATE TRIGGER note_run AFTER INSERT OR UPDATE OR DELETE ON hookonce.runs
    FOR EACH ROW EXECUTE FUNCTION hookonce.note_run();
INSERT INTO hookonce.upgrade_progress (copied, until_event) SELECT 0, coalesce(max(id), 0) FROM hookonce.events;
"""

# A batch is charged when it ends; what the supervisor of a worker has noted as failed was charged before.
_OPEN = """
INSERT INTO hookonce.queue
    (event, n, received_at, source, type, handler, cycle, attempts, due_at, waits, slot_at, schedule)
SELECT e.id, row_number() OVER (PARTITION BY e.id ORDER BY r.handler) - 1, e.received_at, e.source, e.type, r.handler,
       r.cycle,
       r.attempts - CASE WHEN r.status = 'running' AND NOT EXISTS (
           SELECT FROM hookonce.batches b WHERE b.token = r.token) AND NOT EXISTS (
           SELECT FROM hookonce.failures f WHERE f.event = r.event AND f.handler = r.handler AND f.cycle = r.cycle
                                             AND f.attempt = r.attempts AND f.failed_at >= r.started_at)
                    THEN 1 ELSE 0 END,
       CASE WHEN r.status = 'running' THEN coalesce(r.lease_until, r.due_at, e.received_at)
            WHEN r.token IS NULL THEN coalesce(r.due_at, e.received_at) ELSE e.received_at END,
       coalesce(r.parked, CASE WHEN e.parked = 'source' THEN 'source:' || e.source END,
                CASE WHEN r.status = 'running' AND NOT EXISTS (
                    SELECT FROM hookonce.batches b WHERE b.token = r.token) AND NOT EXISTS (
                    SELECT FROM hookonce.breakers t WHERE t.handler = r.handler AND t.trying = r.event)
                THEN 'suspect' END),
       r.slot_at, r.schedule
FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event
WHERE r.status IN ('waiting', 'running') AND {which}
UNION ALL
SELECT e.id, 0, e.received_at, e.source, e.type, NULL, 1, 0, coalesce(e.due_at, e.received_at),
       CASE WHEN e.status = 'held' THEN 'held' WHEN e.parked = 'source' THEN 'source:' || e.source END, NULL, NULL
FROM hookonce.events e
WHERE e.status NOT IN ('done', 'dead', 'ignored') AND {which}
      AND NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.event = e.id)
ON CONFLICT DO NOTHING
"""
_ENDED = """
INSERT INTO hookonce.next_runs
    (event, handler, cycle, status, attempts, started_at, finished_at, result, sealed_result, key_id)
SELECT * FROM (
    SELECT r.event, r.handler, r.cycle, r.status, r.attempts, r.started_at,
           coalesce(r.finished_at, r.started_at, e.received_at), r.result, r.sealed_result, r.key_id
    FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event
    WHERE r.status IN ('done', 'dead') AND {which}
    UNION ALL
    SELECT e.id, '', 1, e.status, 0, NULL, e.received_at, NULL, NULL, NULL FROM hookonce.events e
    WHERE e.status IN ('done', 'dead', 'ignored') AND {which}
          AND NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.event = e.id)
) AS ended ORDER BY 1
ON CONFLICT DO NOTHING
"""
_REPEATED = """
INSERT INTO hookonce.redeliveries (event, count)
SELECT e.id, e.deliveries - 1 FROM hookonce.events e WHERE e.deliveries > 1 AND {which} FOR KEY SHARE
ON CONFLICT (event) DO UPDATE SET count = excluded.count
"""
_COPY = (_ENDED, _OPEN, _REPEATED)
_OF_RANGE = "e.id > %(after)s AND e.id <= %(last)s"
_OF_NOTES = "e.id = ANY(%(events)s)"

_NEXT_RANGE = """
SELECT p.copied, (SELECT max(id) FROM (SELECT id FROM hookonce.events WHERE id > p.copied AND id <= p.until_event
                                       ORDER BY id LIMIT %s) AS next)
FROM hookonce.upgrade_progress p
"""
_FOLLOWED = """
WITH followed AS (
    DELETE FROM hookonce.upgrade_changes
    WHERE ctid = ANY(ARRAY(SELECT ctid FROM hookonce.upgrade_changes LIMIT %s)) RETURNING event)
SELECT count(*), array_agg(DISTINCT event ORDER BY event) FROM followed
"""
_LEASED = """
SELECT r.event FROM hookonce.runs r WHERE r.event = ANY(%(events)s) AND r.token IS NOT NULL AND r.lease_until > now()
"""
_ANY_LEASED = """
SELECT DISTINCT r.event FROM hookonce.queue q JOIN hookonce.runs r ON r.event = q.event
WHERE r.token IS NOT NULL AND r.lease_until > now()
"""

# With `runs` locked each mark that is to be seen is of a transaction that was committed.
_BURY_COMMITTED = """
WITH buried AS (
    UPDATE hookonce.runs r SET status = 'dead', due_at = NULL, finished_at = now(), parked = NULL
    FROM hookonce.marks m
    WHERE (m.event, m.handler, m.token) = (r.event, r.handler, r.token) AND r.status = 'running'
    RETURNING r.event, r.handler, r.cycle, r.attempts
)
INSERT INTO hookonce.failures (event, handler, cycle, attempt, error)
SELECT event, handler, cycle, attempts, 'the handler committed the transaction it was given: what it wrote until then '
       'stays, so there is no further attempt; only return, and it is committed with the run' FROM buried
"""

_MARKS = """
CREATE TABLE hookonce.marks (
    event bigint NOT NULL,
    n smallint NOT NULL,
    token uuid NOT NULL,
    CONSTRAINT marks_pkey PRIMARY KEY (event, n, token)
) WITH (autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0);
"""
_RENAME = """
ALTER TABLE hookonce.next_runs RENAME TO runs;
ALTER TABLE hookonce.runs RESET (autovacuum_enabled);
ALTER TABLE hookonce.runs RENAME CONSTRAINT next_runs_pkey TO runs_pkey;
ALTER INDEX hookonce.next_runs_dead RENAME TO runs_dead;
ALTER INDEX hookonce.next_runs_ignored RENAME TO runs_ignored;
ALTER INDEX hookonce.next_runs_finished RENAME TO runs_finished;
"""
_STEPS_POINT_AT_EVENTS = """
ALTER TABLE hookonce.steps DROP CONSTRAINT steps_run_fkey;
ALTER TABLE hookonce.steps ADD CONSTRAINT steps_event_fkey
    FOREIGN KEY (event) REFERENCES hookonce.events (id) ON DELETE CASCADE NOT VALID;
"""
_SMALL_TABLES = f"""
DROP TABLE hookonce.marks;
{_MARKS}
DELETE FROM hookonce.limit_places;
DELETE FROM hookonce.batches WHERE token IS NOT NULL;
ALTER TABLE hookonce.batches DROP COLUMN token, DROP COLUMN lease_until;
"""  # noqa: S608  a constant
_KEEP_FORMER = """
DROP TRIGGER note_new ON hookonce.events;
DROP TRIGGER note_changed ON hookonce.events;
DROP TRIGGER note_run ON hookonce.runs;
DROP FUNCTION hookonce.note_new_event(), hookonce.note_former_event(), hookonce.note_run();
ALTER TABLE hookonce.runs RENAME TO former_runs;
ALTER TABLE hookonce.former_runs RENAME CONSTRAINT runs_pkey TO former_runs_pkey;
ALTER INDEX hookonce.runs_finished RENAME TO former_runs_finished;
"""

# A status says that a receiver of before has stored the event; it names no `parked`, and its claims do.
_BRIDGE = """
ALTER TABLE hookonce.events ALTER COLUMN status DROP NOT NULL;
ALTER TABLE hookonce.events RENAME COLUMN parked TO former_parked;
CREATE FUNCTION hookonce.queue_former_event() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.status IN ('dead', 'ignored', 'done') THEN
        INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at)
        VALUES (NEW.id, '', 1, NEW.status, 0, NEW.received_at);
    ELSE
        INSERT INTO hookonce.queue (event, received_at, source, type, due_at, waits)
        VALUES (NEW.id, NEW.received_at, NEW.source, NEW.type, coalesce(NEW.due_at, NEW.received_at),
                CASE WHEN NEW.status = 'held' THEN 'held' END);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION hookonce.count_former_redelivery() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO hookonce.redeliveries AS r (event, count) VALUES (NEW.id, NEW.deliveries - OLD.deliveries)
    ON CONFLICT (event) DO UPDATE SET count = r.count + excluded.count;
    RETURN NULL;
END $$;
CREATE FUNCTION hookonce.refuse_former_code() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION
        'this ledger was upgraded, and this process is of the version before; start the new one instead of it';
END $$;
CREATE FUNCTION hookonce.keep_open_event() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM hookonce.queue WHERE event = OLD.id) THEN
        RETURN NULL;
    END IF;
    DELETE FROM hookonce.runs WHERE event = OLD.id;
    RETURN OLD;
END $$;
CREATE TRIGGER queue_former_event AFTER INSERT ON hookonce.events
    FOR EACH ROW WHEN (NEW.status IS NOT NULL) EXECUTE FUNCTION hookonce.queue_former_event();
CREATE TRIGGER count_former_redelivery AFTER UPDATE OF deliveries ON hookonce.events
    FOR EACH ROW WHEN (NEW.deliveries > OLD.deliveries) EXECUTE FUNCTION hookonce.count_former_redelivery();
CREATE TRIGGER refuse_former_code BEFORE UPDATE OF status, due_at ON hookonce.events
    FOR EACH STATEMENT EXECUTE FUNCTION hookonce.refuse_former_code();
CREATE TRIGGER keep_open_event BEFORE DELETE ON hookonce.events
    FOR EACH ROW EXECUTE FUNCTION hookonce.keep_open_event();
UPDATE hookonce.upgrade_progress SET swapped_at = now();
"""
_BRIDGE_FUNCTIONS = ("queue_former_event", "count_former_redelivery", "refuse_former_code", "keep_open_event")

# Who may read runs may read what has come in their place; who has to write is given that by `hookonce db roles`.
_GRANTS = """
DO $$
DECLARE reader text;
BEGIN
    FOR reader IN
        SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_class c, aclexplode(c.relacl) AS a
        WHERE c.oid = 'hookonce.former_runs'::regclass AND a.grantee <> c.relowner AND a.privilege_type = 'SELECT'
    LOOP
        EXECUTE format('GRANT SELECT ON hookonce.queue, hookonce.runs, hookonce.claims, hookonce.redeliveries, '
                       'hookonce.event_states, hookonce.run_states TO %s', reader);
    END LOOP;
END $$;
"""

_CONTRACT = f"""
DROP TRIGGER queue_former_event ON hookonce.events;
DROP TRIGGER count_former_redelivery ON hookonce.events;
DROP TRIGGER refuse_former_code ON hookonce.events;
DROP TRIGGER keep_open_event ON hookonce.events;
DROP FUNCTION {", ".join(f"hookonce.{name}()" for name in _BRIDGE_FUNCTIONS)};
DROP TABLE hookonce.former_runs, hookonce.upgrade_changes, hookonce.upgrade_progress;
DROP INDEX hookonce.events_due, hookonce.events_parked, hookonce.events_parked_received, hookonce.events_attention;
ALTER TABLE hookonce.events DROP COLUMN status, DROP COLUMN due_at, DROP COLUMN former_parked, DROP COLUMN deliveries;
"""
_OF_AN_EMPTY_LEDGER = f"""
DROP TABLE hookonce.runs CASCADE;
DROP INDEX hookonce.events_due, hookonce.events_parked, hookonce.events_parked_received, hookonce.events_attention;
ALTER TABLE hookonce.events DROP COLUMN status, DROP COLUMN due_at, DROP COLUMN parked, DROP COLUMN deliveries;
{QUEUE}
{_RENAME}
ALTER TABLE hookonce.steps ADD CONSTRAINT steps_event_fkey
    FOREIGN KEY (event) REFERENCES hookonce.events (id) ON DELETE CASCADE;
{_SMALL_TABLES}
"""
# What deliveries need comes last, so that none waits while another table is not to be had.
_LOCK = """
LOCK TABLE hookonce.next_runs, hookonce.steps, hookonce.marks, hookonce.batches, hookonce.limit_places,
           hookonce.events, hookonce.runs IN ACCESS EXCLUSIVE MODE
"""
_STATE = """
SELECT to_regclass('hookonce.upgrade_progress') IS NOT NULL, to_regclass('hookonce.former_runs') IS NOT NULL
"""
_UNFINISHED = "SELECT copied, until_event, began_at, swapped_at FROM hookonce.upgrade_progress"

# What was begun after the swap may be of either version: they have the same names.
_OF_BEFORE = """
SELECT count(*), min(application_name) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'hookonce%%' AND application_name <> 'hookonce migrate'
      AND pid <> pg_backend_pid() AND coalesce(backend_start < %(since)s::timestamptz, true)
"""
_STORED_BY_BEFORE = f"""
SELECT max(id) FROM (SELECT id, status, received_at FROM hookonce.events ORDER BY id DESC LIMIT {BACK}) AS newest
WHERE status IS NOT NULL AND received_at > (SELECT swapped_at FROM hookonce.upgrade_progress)
      AND received_at > now() - interval '{BELIEVED_GONE_AFTER}'
"""  # noqa: S608  constants


def make_of_nothing(connection: psycopg.Connection[Any]) -> None:
    """Give a ledger that was made in this very transaction the tables of today."""
    connection.execute(_OF_AN_EMPTY_LEDGER.encode())


def is_expanded(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the new tables are there, and what changes is noted."""
    row = connection.execute(_STATE).fetchone()
    return bool(row and row[0])


def is_contracted(connection: psycopg.Connection[Any]) -> bool:
    """Return whether nothing is left of the former tables; asked of a ledger that was swapped."""
    row = connection.execute(_STATE).fetchone()
    return not (row and row[1])


def expand(connection: psycopg.Connection[Any]) -> None:
    """Make the new tables and have changes noted, unless that is done; in the caller's transaction.

    It waits for transactions that write to `events` or `runs`, and they for it, a moment each.
    """
    if not is_expanded(connection):
        connection.execute(QUEUE.encode())
        connection.execute(_NOTES.encode())


def copy_range(connection: psycopg.Connection[Any]) -> int | None:
    """Copy the next `RANGE` events with their runs, in the caller's transaction; return the last, None at the end."""
    row = connection.execute(_NEXT_RANGE, [RANGE]).fetchone()
    if row is None or row[1] is None:
        return None
    after, last = row
    for statement in _COPY:
        connection.execute(statement.format(which=_OF_RANGE).encode(), {"after": after, "last": last})
    connection.execute("UPDATE hookonce.upgrade_progress SET copied = %s", [last])
    return int(last)


def catch_up(connection: psycopg.Connection[Any]) -> tuple[int, Sequence[int]]:
    """Copy anew what `NOTED` notes say has changed, in the caller's transaction.

    Return how many there were, and the events.
    """
    row = connection.execute(_FOLLOWED, [NOTED]).fetchone()
    count, events = row or (0, None)
    if not events:
        return 0, []
    connection.execute("DELETE FROM hookonce.next_runs WHERE event = ANY(%s)", [events])
    connection.execute("DELETE FROM hookonce.queue WHERE event = ANY(%s)", [events])
    for statement in _COPY:
        connection.execute(statement.format(which=_OF_NOTES).encode(), {"events": events})
    return count, events


def leased(connection: psycopg.Connection[Any], events: Sequence[int] | None = None) -> set[int]:
    """Return which of these events, or of all, are under a lease of a worker of before."""
    if events is None:
        return {row[0] for row in connection.execute(_ANY_LEASED)}
    return {row[0] for row in connection.execute(_LEASED, {"events": list(events)})}


def lock(connection: psycopg.Connection[Any]) -> None:
    """Keep everybody away from what is to be changed until the caller's transaction has ended."""
    connection.execute(_LOCK)


def swap(connection: psycopg.Connection[Any], views: Sequence[str]) -> None:
    """Put the new tables in the place of the former, in the caller's transaction; whatever is not copied is, before.

    Receivers and workers wait as long as that transaction lasts.
    """
    expand(connection)
    lock(connection)
    while copy_range(connection) is not None:
        pass
    connection.execute(_BURY_COMMITTED)
    while catch_up(connection)[0]:
        pass
    for script in (_STEPS_POINT_AT_EVENTS, _SMALL_TABLES, _KEEP_FORMER, _RENAME, _BRIDGE, *views, _GRANTS):
        connection.execute(script.encode())


def progress(connection: psycopg.Connection[Any]) -> tuple[Any, ...] | None:
    """Return how far it has come: copied, until which event, when it began, when it was swapped."""
    return connection.execute(_UNFINISHED).fetchone()


def in_the_way(connection: psycopg.Connection[Any]) -> str | None:
    """Return who of the version before is still there, as far as that is to be seen; None if nobody is.

    That is who was connected before the swap, and who has stored an event since as that version does.
    """
    row = connection.execute("SELECT swapped_at FROM hookonce.upgrade_progress").fetchone()
    count, name = connection.execute(_OF_BEFORE, {"since": row[0] if row else None}).fetchone() or (0, None)
    if count:
        return f"{count} sessions ('{name}') are connected since before the upgrade"
    stored = connection.execute(_STORED_BY_BEFORE).fetchone()
    if stored and stored[0] is not None:
        return f"event {stored[0]} was stored by a receiver of before in the last {BELIEVED_GONE_AFTER}"
    return None


def sessions(connection: psycopg.Connection[Any]) -> int:
    """Return how many sessions of hookonce's are connected, but for upgrades."""
    row = connection.execute(_OF_BEFORE, {"since": None}).fetchone()
    return int(row[0]) if row else 0


def contract(connection: psycopg.Connection[Any]) -> None:
    """Drop what was kept for processes of before, in the caller's transaction; rewrites nothing."""
    connection.execute(_CONTRACT.encode())
