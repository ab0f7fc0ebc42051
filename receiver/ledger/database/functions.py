"""Functions of the ledger: they do with its owner's rights what a role with fewer may not do by itself.

Each does one thing and asks for what entitles to it: a run is ended only by its claim's token, and only by the
transaction that was guarded. SECURITY DEFINER, with a search path that nobody else can write to; EXECUTE for those
alone to whom `receiver.ledger.database.roles` gives it. Where one role does everything they are not there.

What ends a run is one rule in one text, `END_ONE` and `END_MANY`: for our own connections, for Django's, and inside the
function for a role that has no right on the tables. It refuses in one way, too: by `NO_EVENT`.
"""

from typing import Any, NamedTuple

import psycopg

from hookonce.receiver.ledger.states import RunStatus

_HEAD = "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"

_MAKE_PARTITION = f"""
CREATE OR REPLACE FUNCTION hookonce.make_partition(day date) RETURNS void
{_HEAD} SET timezone = 'UTC' AS $body$
DECLARE name text := 'hookonce.bodies_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF to_regclass(name) IS NULL THEN
        EXECUTE format('CREATE TABLE %s (LIKE hookonce.bodies INCLUDING ALL)', name);
        EXECUTE format('ALTER TABLE hookonce.bodies ATTACH PARTITION %s FOR VALUES FROM (%L) TO (%L)',
                       name, day::timestamptz, (day + 1)::timestamptz);
    END IF;
END $body$"""  # noqa: S608  a constant

_DROP_PARTITION = f"""
CREATE OR REPLACE FUNCTION hookonce.drop_partition(day date) RETURNS void
{_HEAD} SET timezone = 'UTC' AS $body$
BEGIN
    IF EXISTS (SELECT FROM hookonce.queue WHERE received_at >= day::timestamptz
                                                AND received_at < (day + 1)::timestamptz) THEN
        RAISE EXCEPTION 'events of % are yet to be handled', day USING ERRCODE = 'object_in_use';
    END IF;
    EXECUTE format('DROP TABLE %s', 'hookonce.bodies_' || to_char(day, 'YYYYMMDD'));
END $body$"""

GUARD = "INSERT INTO hookonce.guards DEFAULT VALUES RETURNING xact_id::text"
"""Has PostgreSQL refuse to commit the transaction until `UNGUARD`; returns the transaction's id."""
UNGUARD = "DELETE FROM hookonce.guards WHERE xact_id = pg_current_xact_id_if_assigned()"

_GUARD_TRANSACTION = f"""
CREATE OR REPLACE FUNCTION hookonce.guard_transaction() RETURNS text
{_HEAD} AS $body$
DECLARE made text;
BEGIN
    {GUARD} INTO made;
    RETURN made;
END $body$"""

_END = f"""
WITH ended AS NOT MATERIALIZED (
    SELECT * FROM {{rows}} AS t (event, n, result, sealed, key)
), gone AS (
    DELETE FROM hookonce.queue q USING ended WHERE q.event = ended.event AND q.n = ended.n AND q.token = %(token)s::uuid
    RETURNING q.event, q.n, q.handler, q.cycle, q.attempts, pg_advisory_unlock_all()
)
INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, started_at, finished_at, result, sealed_result,
                           key_id)
SELECT gone.event, handler, cycle, '{RunStatus.DONE}', attempts + 1, clock_timestamp() - %(took)s::interval,
       clock_timestamp(), result::json, sealed, key
FROM ended LEFT JOIN gone ON gone.event = ended.event AND gone.n = ended.n
"""  # noqa: S608  constants
END_ONE = _END.format(
    rows="(VALUES (%(event)s::bigint, %(n)s::smallint, %(result)s::text, %(sealed)s::bytea, %(key)s::text))"
)
"""The end of attempts as done: of all rows of the queue that are given, or of none; here of one row.

A row is ended only under its claim's token.
A row that is not the attempt's own has an outcome without an event (`NO_EVENT`), which the table refuses: so a COMMIT
behind it in the pipeline does nothing. Advisory locks that a handler has left in the session go with the rows.
"""
END_MANY = _END.format(
    rows="""unnest(%(events)s::bigint[], %(places)s::smallint[], %(results)s::text[], %(sealed)s::bytea[],
                         %(keys)s::text[])"""
)
"""`END_ONE` for as many runs as are given: 28 µs dearer for one of them."""
NO_EVENT = "hookonce.runs.event"
"""The column that an outcome without an event lacks."""

LOG = """
INSERT INTO hookonce.run_logs (event, handler, cycle, attempt, received_at, lines, key_id)
SELECT q.event, handler, cycle, attempts + 1, received_at, t.logs, t.key
FROM hookonce.queue q
JOIN unnest(%(events)s::bigint[], %(places)s::smallint[], %(logs)s::bytea[], %(logs_keys)s::text[])
    AS t (event, n, logs, key) ON q.event = t.event AND q.n = t.n
WHERE q.token = %(token)s::uuid AND logs IS NOT NULL ORDER BY q.event
"""
"""The log lines of attempts, before their end. The first event of a batch has them all, and comes first."""

# Of a source that keeps no bodies, with the end of the last run: what failed needs its body again. Ends of siblings
# take turns, and each sees in its next statement what those before it have committed.
LOCK_UNKEPT = (
    "FROM hookonce.events WHERE id = ANY(%(events)s::bigint[]) AND NOT keep_body ORDER BY id FOR UPDATE"
)
DROP_UNKEPT = f"""
DELETE FROM hookonce.bodies b USING hookonce.events e
WHERE e.id = ANY(%(events)s::bigint[]) AND NOT e.keep_body AND b.event = e.id AND b.received_at = e.received_at
      AND NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = e.id)
      AND NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.event = e.id AND r.is_last
                                                        AND r.status = '{RunStatus.DEAD}')
"""  # noqa: S608  constants
_GIVEN = {
    "events": "bigint[]",
    "places": "smallint[]",
    "token": "uuid",
    "took": "interval",
    "results": "text[]",
    "sealed": "bytea[]",
    "keys": "text[]",
    "logs": "bytea[]",
    "logs_keys": "text[]",
}
_NUMBERED = {name: f"${number}" for number, name in enumerate(_GIVEN, 1)}
# Planned as by `receiver.ledger.database.plans`.
_END_RUNS = f"""
CREATE OR REPLACE FUNCTION hookonce.end_runs({", ".join(_GIVEN.values())}) RETURNS void
{_HEAD} SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $body$
DECLARE is_any_unkept boolean;
BEGIN
    {UNGUARD};
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this is not the transaction that was begun' USING ERRCODE = 'invalid_transaction_termination';
    END IF;
    PERFORM {LOCK_UNKEPT % _NUMBERED};
    is_any_unkept := FOUND;
    {LOG % _NUMBERED};
    {END_MANY % _NUMBERED};
    IF is_any_unkept THEN
        {DROP_UNKEPT % _NUMBERED};
    END IF;
END $body$"""

# Waits for other runs of the entity for so many milliseconds, and puts the transaction's own limit back. Gives no event
# where a newer version was done.
_RAISE = """
WITH bounded AS MATERIALIZED (
    SELECT current_setting('lock_timeout') AS usual, set_config('lock_timeout', {patience}, true)
), raised AS (
    INSERT INTO hookonce.entities AS known (source, entity, account, handler, version, event)
    SELECT {values} FROM bounded
    ON CONFLICT (source, entity, account, handler)
    DO UPDATE SET version = excluded.version, event = excluded.event, raised_at = excluded.raised_at
    WHERE (known.version, known.event) <= (excluded.version, excluded.event)
    RETURNING known.event
)
SELECT raised.event, set_config('lock_timeout', bounded.usual, true) {into} FROM bounded LEFT JOIN raised ON true
"""
RAISE = _RAISE.format(
    patience="%(patience)s::text",
    values="%(source)s::text, %(entity)s::text, %(account)s::text, %(handler)s::text, %(version)s::bigint, "
    "%(event)s::bigint",
    into="",
)
_RAISE_WITHIN = _RAISE.format(
    patience="patience",
    values="e.source, of_entity, e.account, of_handler, of_version, of_event",
    into="INTO newest, usual",
)

# Only of a run that is under way; source and account are its event's. Returns the event of the newest version. Without
# an entity the event is counted as one that has none.
_RAISE_ENTITY = f"""
CREATE OR REPLACE FUNCTION hookonce.raise_entity(of_event bigint, of_handler text, of_entity text, of_version bigint,
                                                 patience text) RETURNS bigint
{_HEAD} AS $body$
DECLARE e record; newest bigint; usual text;
BEGIN
    SELECT source, coalesce(account, '') AS account INTO e FROM hookonce.events WHERE id = of_event
        AND EXISTS (SELECT FROM hookonce.queue q
                    WHERE q.event = of_event AND q.handler = of_handler AND q.token IS NOT NULL);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no such run is under way' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF of_entity IS NULL THEN
        INSERT INTO hookonce.activity (minutes, at, source, what, count)
        VALUES (0, 'epoch', of_handler, 'unguarded', 1), (1, date_trunc('minute', now()), of_handler, 'unguarded', 1)
        ON CONFLICT (minutes, at, source, what) DO UPDATE SET count = activity.count + excluded.count;
        RETURN NULL;
    END IF;
    {_RAISE_WITHIN.strip()};
    IF newest IS NULL THEN
        SELECT event INTO newest FROM hookonce.entities n
        WHERE n.source = e.source AND n.entity = of_entity AND n.account = e.account AND n.handler = of_handler;
    END IF;
    RETURN newest;
END $body$"""  # noqa: S608  constants


class Function(NamedTuple):
    """A function by its signature, and the statement that makes it."""

    signature: str
    definition: str


MAKE_PARTITION = Function("hookonce.make_partition(date)", _MAKE_PARTITION.strip())
DROP_PARTITION = Function("hookonce.drop_partition(date)", _DROP_PARTITION.strip())
GUARD_TRANSACTION = Function("hookonce.guard_transaction()", _GUARD_TRANSACTION.strip())
END_RUNS = Function(f"hookonce.end_runs({', '.join(_GIVEN.values())})", _END_RUNS.strip())
RAISE_ENTITY = Function("hookonce.raise_entity(bigint, text, text, bigint, text)", _RAISE_ENTITY.strip())
CALL_RAISE = """
SELECT hookonce.raise_entity(%(event)s::bigint, %(handler)s::text, %(entity)s::text, %(version)s::bigint,
                             %(patience)s::text)
"""
CALL_GUARD = "SELECT hookonce.guard_transaction()"
CALL_END = f"SELECT hookonce.end_runs({', '.join(f'%({name})s::{kind}' for name, kind in _GIVEN.items())})"
_ARE_NEEDED = f"""
SELECT has_function_privilege(to_regprocedure('{END_RUNS.signature}'), 'EXECUTE')
       AND NOT has_table_privilege('hookonce.queue', 'DELETE')
"""


def are_needed(cursor: psycopg.Cursor[Any]) -> bool:
    """Return whether the role of a connection may end runs by the functions, and not without them."""
    return cursor.execute(_ARE_NEEDED).fetchone() == (True,)
