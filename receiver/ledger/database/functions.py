"""Functions of the ledger: they do with its owner's rights what a role with fewer may not do by itself.

Each does one thing and asks for what entitles to it: a run is marked or ended only by its claim's token, and only by
the transaction that was marked. SECURITY DEFINER, with a search path that nobody else can write to; EXECUTE for those
alone to whom `receiver.ledger.database.roles` gives it. Where one role does everything they are not there.

A call costs 4 µs more than the statement by itself, of the 600 to 1,000 that a run takes.
"""

from typing import NamedTuple

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

# Returns the transaction's id; NULL where the run is no longer under the token.
_MARK_RUN = f"""
CREATE OR REPLACE FUNCTION hookonce.mark_run(of_event bigint, of_n smallint, of_token uuid, lock bigint) RETURNS text
{_HEAD} AS $body$
BEGIN
    PERFORM FROM hookonce.queue q WHERE q.event = of_event AND q.n = of_n AND q.token = of_token FOR KEY SHARE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO hookonce.marks (event, n, token) VALUES (of_event, of_n, of_token) ON CONFLICT DO NOTHING;
    PERFORM pg_advisory_xact_lock_shared(lock);
    RETURN pg_current_xact_id()::text;
END $body$"""  # noqa: S608  a constant

# Fails as the statement does (`receiver.ledger.runs.ends`). Of a source that keeps no bodies the body goes with the end
# of the last run; ends of siblings take turns for that.
_END_RUN = f"""
CREATE OR REPLACE FUNCTION hookonce.end_run(of_event bigint, of_n smallint, of_token uuid, xact_id text, took interval,
                                            of_result text, of_sealed bytea, of_key text, logs bytea, logs_key text)
RETURNS void
{_HEAD} AS $body$
DECLARE arrived timestamptz := (SELECT received_at FROM hookonce.events WHERE id = of_event AND NOT keep_body);
BEGIN
    IF xact_id::xid8 IS DISTINCT FROM pg_current_xact_id_if_assigned() THEN
        RAISE EXCEPTION 'this is not the transaction that was marked' USING ERRCODE = 'division_by_zero';
    END IF;
    IF arrived IS NOT NULL THEN
        PERFORM FROM hookonce.events WHERE id = of_event FOR UPDATE;
    END IF;
    WITH gone AS (
        DELETE FROM hookonce.queue q WHERE q.event = of_event AND q.n = of_n AND q.token = of_token
        RETURNING q.event, q.handler, q.cycle, q.attempts, q.received_at
    ), logged AS (
        INSERT INTO hookonce.run_logs (event, handler, cycle, attempt, received_at, lines, key_id)
        SELECT event, handler, cycle, attempts + 1, received_at, logs, logs_key FROM gone WHERE logs IS NOT NULL
    )
    INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, started_at, finished_at, result, sealed_result,
                               key_id)
    SELECT event, handler, cycle, '{RunStatus.DONE}', attempts + 1, clock_timestamp() - took, clock_timestamp(),
           of_result::json, of_sealed, of_key FROM gone;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the run is not under this token' USING ERRCODE = 'division_by_zero';
    END IF;
    DELETE FROM hookonce.marks m WHERE m.event = of_event AND m.n = of_n AND m.token = of_token;
    IF arrived IS NOT NULL THEN
        DELETE FROM hookonce.bodies b WHERE b.event = of_event AND b.received_at = arrived
            AND NOT EXISTS (SELECT FROM hookonce.queue q WHERE q.event = of_event)
            AND NOT EXISTS (SELECT FROM hookonce.runs r WHERE r.event = of_event AND r.is_last
                                                              AND r.status = '{RunStatus.DEAD}');
    END IF;
END $body$"""  # noqa: S608  constants


class Function(NamedTuple):
    """A function by its signature, and the statement that makes it."""

    signature: str
    definition: str


MAKE_PARTITION = Function("hookonce.make_partition(date)", _MAKE_PARTITION.strip())
DROP_PARTITION = Function("hookonce.drop_partition(date)", _DROP_PARTITION.strip())
MARK_RUN = Function("hookonce.mark_run(bigint, smallint, uuid, bigint)", _MARK_RUN.strip())
END_RUN = Function(
    "hookonce.end_run(bigint, smallint, uuid, text, interval, text, bytea, text, bytea, text)",
    _END_RUN.strip(),
)
