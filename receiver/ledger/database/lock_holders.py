"""Sessions that hold locks, or wait for them, named for a person who has to end them or wait for them.

A role without pg_read_all_stats sees of other roles' sessions the process and the role, not the program or since when.
"""

from datetime import timedelta
from typing import Any

import psycopg

MOST_NAMED = 3
_HOLDERS = """
SELECT l.pid, a.application_name, a.usename, extract(epoch FROM clock_timestamp() - a.xact_start)::float8,
       string_agg(DISTINCT c.relname, ', ' ORDER BY c.relname)
FROM pg_locks l
JOIN pg_class c ON c.oid = l.relation AND c.relkind IN ('r', 'p')
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = %(place)s
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND coalesce(a.xact_start < clock_timestamp() - %(least)s, true)
GROUP BY l.pid, a.application_name, a.usename, a.xact_start
ORDER BY a.xact_start NULLS LAST, l.pid
LIMIT %(most)s
"""
_WAITING = """
SELECT a.pid, a.application_name, a.usename, extract(epoch FROM clock_timestamp() - a.query_start)::float8,
       a.wait_event = 'SyncRep', coalesce(b.pid, blocker), b.application_name, b.usename,
       extract(epoch FROM clock_timestamp() - b.xact_start)::float8
FROM pg_stat_activity a LEFT JOIN LATERAL unnest(pg_blocking_pids(a.pid)) AS blocker ON true
LEFT JOIN pg_stat_activity b ON b.pid = blocker
WHERE a.datname = current_database() AND (a.wait_event_type = 'Lock' OR a.wait_event = 'SyncRep')
      AND a.query_start < clock_timestamp() - %(least)s
ORDER BY a.query_start, a.pid
LIMIT %(most)s
"""
_AUTOVACUUM = """
SELECT EXISTS (SELECT FROM pg_stat_progress_vacuum v
               JOIN pg_stat_activity a ON a.pid = v.pid AND a.backend_type = 'autovacuum worker'
               JOIN pg_class c ON c.oid = v.relid
               JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = %s
               WHERE v.datname = current_database())
"""


def has_autovacuum(connection: psycopg.Connection[Any], place: str) -> bool:
    """Return whether autovacuum is at work on a table of the schema."""
    row = connection.execute(_AUTOVACUUM, [place]).fetchone()
    return bool(row and row[0])


def describe(connection: psycopg.Connection[Any], place: str, least: timedelta) -> str:
    """Name the oldest transactions, open for longer than `least`, that hold locks on tables of a schema."""
    values = {"place": place, "least": least, "most": MOST_NAMED}
    found = [_described(*row) for row in connection.execute(_HOLDERS, values)]
    return "; ".join(found) or "a session that is not to be seen (pg_prepared_xacts shows some)"


def waiting(connection: psycopg.Connection[Any], least: timedelta) -> str:
    """Name the sessions of this database that wait for longer than `least`, and for whom; empty where none does."""
    found = []
    for pid, program, role, seconds, is_replication, *holder in connection.execute(
        _WAITING, {"least": least, "most": MOST_NAMED}
    ):
        whom = _described(*holder) if holder[0] else "a transaction that is prepared (pg_prepared_xacts)"
        whom = "a synchronous standby" if is_replication else whom
        found.append(f"{_described(pid, program, role, None)} has waited {seconds:.0f} s for {whom}")
    return "; ".join(found)


def _described(
    pid: int, program: str | None, role: str | None, seconds: float | None, tables: str | None = None
) -> str:
    by = f"{program!r}" if program else "a program that it does not name"
    since = f", its transaction {seconds:.0f} s old" if seconds is not None else ""
    return f"process {pid} ({by}, role {role}{since}{f', on {tables}' if tables else ''})"
