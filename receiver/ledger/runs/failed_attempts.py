"""Ends attempts that failed, after the rollback of what they wrote: a run waits for its next attempt, or is dead.

In the caller's transaction, and only under the claim's token, as `receiver.ledger.runs.ends` does it for those that
succeed. Why an attempt failed is kept beside, and counted for its issue.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import psycopg

from hookonce.receiver.ledger.database import plans
from hookonce.receiver.ledger.handlers import MOST_ANNOUNCED
from hookonce.receiver.ledger.runs.claimed import ClaimedRun, QueueKey
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.runs.queue_pages import PUT_OFF_NOW
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats import issues

_FAIL = f"""
WITH mine AS MATERIALIZED (
    SELECT q.event, q.n, q.handler, q.cycle, q.attempts, q.received_at, t.*
    FROM hookonce.queue q JOIN unnest(%(events)s::bigint[], %(places)s::smallint[], %(statuses)s::text[],
        %(counted)s::bool[], %(most)s::int[], %(delays)s::interval[], %(waits)s::text[], %(errors)s::text[],
        %(tracebacks)s::bytea[], %(keys)s::text[], %(logs)s::bytea[], %(logs_keys)s::text[], %(issues)s::text[],
        %(titles)s::text[], %(releases)s::text[])
        AS t (of_event, of_n, status, counted, most, delay, waits, error, traceback, key, logs, logs_key,
              of_issue, of_title, release)
        ON q.event = t.of_event AND q.n = t.of_n
    WHERE q.token = %(token)s ORDER BY q.event, q.n FOR UPDATE OF q
), verdict AS MATERIALIZED (
    SELECT mine.*, mine.attempts + counted::int AS used, coalesce(of_title, error) AS title,
           coalesce(of_issue, {issues.OF_TEXT.format(handler="handler", error="error")}) AS issue,
           status = '{RunStatus.DEAD}' OR coalesce(counted AND mine.attempts + 1 >=
               greatest(most, {MOST_ANNOUNCED.format(handler="mine.handler")}), false) AS is_dead
    FROM mine
), buried AS (
    DELETE FROM hookonce.queue q USING verdict v WHERE q.event = v.event AND q.n = v.n AND v.is_dead
), ended AS (
    INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, started_at, finished_at, issue)
    SELECT event, handler, cycle, '{RunStatus.DEAD}', used, clock_timestamp() - %(took)s::interval, clock_timestamp(),
           issue
    FROM verdict WHERE is_dead
), put_off AS (
    UPDATE hookonce.queue q SET token = NULL, attempts = v.used, cut_offs = 0, waits = v.waits,
                                due_at = clock_timestamp() + v.delay, slot_at = NULL,
                                schedule = CASE WHEN v.error IS NULL THEN {PUT_OFF_NOW} END
    FROM verdict v WHERE q.event = v.event AND q.n = v.n AND NOT v.is_dead
), failed AS (
    INSERT INTO hookonce.failures (event, handler, cycle, attempt, started_at, failed_at, error, traceback, key_id,
                                   issue, release)
    SELECT event, handler, cycle, attempts + 1, clock_timestamp() - nullif(%(took)s::interval, interval '0'),
           clock_timestamp(), error, traceback, key, issue, release
    FROM verdict WHERE error IS NOT NULL
    ORDER BY event, n
), met AS ({issues.MET.format(failures="verdict")}
), released AS ({issues.RELEASED.format(failures="verdict")}
), reopened AS ({issues.REOPENED.format(failures="verdict")}
), logged AS (
    INSERT INTO hookonce.run_logs (event, handler, cycle, attempt, received_at, lines, key_id)
    SELECT event, handler, cycle, attempts + 1, received_at, logs, logs_key FROM verdict WHERE logs IS NOT NULL
    ORDER BY event, n
)
SELECT event, n, is_dead FROM verdict
"""  # noqa: S608  constants


# For another transaction of the attempt: at its COMMIT still, or in a backend that has not noticed its client's end.
_WAIT = "SET LOCAL lock_timeout = '5s'"


def fail(
    connection: psycopg.Connection,
    runs: Sequence[ClaimedRun],
    endings: Sequence[AttemptResult],
    took: timedelta = timedelta(0),
) -> Mapping[QueueKey, RunStatus]:
    """End attempts of one claim that did not succeed, in the caller's transaction; return what their runs are now.

    Those that are not under their token any more are left out. Raises `psycopg.errors.LockNotAvailable` where another
    transaction keeps one of them for longer than a COMMIT takes.
    """
    return fail_rows(connection, runs[0].token, [(run.event.id, run.n) for run in runs], endings, took)


def fail_rows(
    connection: psycopg.Connection,
    token: object,
    keys: Sequence[QueueKey],
    endings: Sequence[AttemptResult],
    took: timedelta = timedelta(0),
) -> Mapping[QueueKey, RunStatus]:
    """Do as `fail` does for rows of the queue, whoever was at them."""
    values = {
        "token": token,
        "events": [event for event, _ in keys],
        "places": [n for _, n in keys],
        "took": took,
        "statuses": [str(each.status) for each in endings],
        "counted": [each.counted for each in endings],
        "most": [each.most for each in endings],
        "delays": [each.delay for each in endings],
        "waits": [each.waits for each in endings],
        "errors": [each.error for each in endings],
        "tracebacks": [each.traceback for each in endings],
        "keys": [each.key_id for each in endings],
        "logs": [each.logs for each in endings],
        "logs_keys": [each.logs_key for each in endings],
        "issues": [each.issue and each.issue.id for each in endings],
        "titles": [each.issue and each.issue.title for each in endings],
        "releases": [each.issue and each.issue.release for each in endings],
    }
    with connection.pipeline():
        connection.execute(plans.FOR_END)
        connection.execute(_WAIT)
        failed = connection.execute(_FAIL, values)
        connection.execute("SET LOCAL lock_timeout TO DEFAULT")
    return {(event, n): RunStatus.DEAD if is_dead else RunStatus.WAITING for event, n, is_dead in failed}
