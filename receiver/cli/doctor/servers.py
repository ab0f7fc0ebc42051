"""Findings of `hookonce doctor` about PostgreSQL and Redis."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, LiteralString, NamedTuple

import psycopg

from hookonce.receiver.cli.output.times import ago, soon
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.config.server_urls import is_cluster, is_pooled, schema_of
from hookonce.receiver.ledger import alerts, pauses
from hookonce.receiver.ledger.database import connections, lock_holders, schema_version
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.database.schema_version import SchemaBehind
from hookonce.receiver.ledger.maintenance import partitions, steady_clock
from hookonce.receiver.ledger.runs import breakers
from hookonce.receiver.ledger.runs.breakers import Breaker
from hookonce.receiver.ledger.stats import backlog
from hookonce.receiver.monitoring import health, rights
from hookonce.receiver.redis import workers
from hookonce.receiver.redis.answers import plain
from hookonce.receiver.redis.client import Client, RedisUnavailable, asking, connect, info

OLDEST_POSTGRESQL = 140000
OLDEST_REDIS = (7, 0)
MAX_CLOCK_SKEW = timedelta(seconds=2)
MAX_BACKLOG_AGE = timedelta(minutes=1)
_UNPINNED: Mapping[str, tuple[frozenset[str], str]] = {
    "default_transaction_read_only": (frozenset({"on"}), "so no delivery can be stored, and each gets 503"),
    "synchronous_commit": (frozenset({"off"}), "so a crash of the server loses deliveries that got 200"),
    "session_replication_role": (
        frozenset({"replica"}),
        "so no foreign key holds, and no trigger of a handler's",
    ),
}
"""Settings that are somebody's decision, or a superuser's alone: the values that do harm, and what harm."""
_LIMITED = "so a search, a list or a handler that sorts much fails"
MIN_DAYS_AHEAD = 3
MANY_EVENTS = 1_000_000
LONG_WAIT = timedelta(seconds=1)
_LOG = """
SELECT c.reltuples, s.setting, coalesce(s.enumvals, '{}') FROM pg_class c, pg_settings s
WHERE c.oid = 'hookonce.events'::regclass AND s.name = 'wal_compression'
"""
_CHECKPOINTS = """
SELECT c.reltuples, pg_indexes_size(c.oid) / 1e6, pg_size_bytes(current_setting('max_wal_size')) / 1e9,
       extract(epoch FROM current_setting('checkpoint_timeout')::interval) / 60
FROM pg_class c WHERE c.oid = 'hookonce.events'::regclass
"""
RARE_GIGABYTES, RARE_MINUTES = 8, 15
"""WAL, and time, that should lie between two checkpoints of a large ledger."""
GOOD_POLICIES = frozenset({"noeviction", "volatile-ttl"})


class Finding(NamedTuple):
    """The result of a check, and what to do about it."""

    level: Literal["ok", "warn", "fail"]
    check: str
    text: str


def require_released(url: str) -> None:
    """Raise `UnreleasedLedger` for one, of which nothing else is worth knowing; a check says what else is wrong."""
    if url:
        with suppress(LedgerUnavailable, psycopg.Error), connections.connect(url) as connection:
            schema_version.found(connection)


def postgresql(url: str) -> Iterator[Finding]:
    """Check the database at `url`: version, schema, partitions, backlog, clock, settings, log."""
    if not url:
        yield Finding(
            "fail", "postgresql", "no address; set DATABASE_URL, or start `hookonce dev` in this directory"
        )
        return
    try:
        with connections.connect(url) as connection:
            yield _version(connection)
            yield from _pooler(connection, url)
            yield from _clock(connection)
            yield _settings(connection)
            health.require_schema(url)
            yield Finding("ok", "schema", "up to date")
            yield _place(connection)
            yield _search_path(connection, schema_of(url))
            yield _rights(connection)
            yield _partitions(connection)
            if since := steady_clock.held_since(connection):
                yield Finding("warn", "retention", f"nothing is pruned: {steady_clock.why(since)}")
            yield from _backlog(connection)
            yield _waits(connection)
            yield judge_log(*_first(connection, _LOG))
            yield judge_checkpoints(*map(float, _first(connection, _CHECKPOINTS)))
            for alert in alerts.open_alerts(connection):
                yield Finding("warn", "alert", f"{alert.kind} {alert.subject}: {alert.detail}")
    except SchemaBehind as error:
        yield Finding("fail", "schema", str(error))
    except psycopg.errors.InsufficientPrivilege as error:
        text = "the role in DATABASE_URL lacks a right; `hookonce db roles` gives what is needed"
        yield Finding("fail", "rights", f"{_first_line(error)}: {text}")
    except (psycopg.Error, LedgerUnavailable) as error:
        yield Finding("fail", "postgresql", f"{_first_line(error)}; start it, or correct DATABASE_URL")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def redis_server(url: str) -> Iterator[Finding]:
    """Check Redis at `url`: version, eviction, cluster, persistence, and the workers registered there."""
    if not url:
        yield Finding("fail", "redis", "no address; set REDIS_URL, or start `hookonce dev` in this directory")
        return
    try:
        with connect(url) as client:
            yield from judge_redis(info(client))
            yield _workers(client)
    except RedisUnavailable as error:
        text = f"does not answer ({error}); nothing is lost, but start it, or correct REDIS_URL"
        yield Finding("fail", "redis", text)


def window_server(url: str) -> Iterator[Finding]:
    """Check the Redis, or Redis Cluster, that window and limits have of their own."""
    try:
        with connect(url) as client, asking():
            if not is_cluster(url):
                yield from (
                    each._replace(check=f"window {each.check}") for each in judge_redis(client.info())
                )
                return
            yield judge_cluster(client.cluster_info())
    except RedisUnavailable as error:
        text = f"does not answer ({error}); duplicates cost more; start it, or correct WINDOW_REDIS_URL"
        yield Finding("fail", "window", text)


def judge_cluster(told: Mapping[str, Any]) -> Finding:
    """Judge what a node of a cluster says of all (CLUSTER INFO)."""
    nodes, primaries = plain(told.get("cluster_known_nodes")), plain(told.get("cluster_size"))
    covered = plain(told.get("cluster_slots_ok"))
    text = f"a cluster of {nodes} nodes, {primaries} of them primaries, {covered} of 16384 slots served"
    if told.get("cluster_state") != "ok" or covered != "16384":
        return Finding(
            "fail", "window", f"{text}; its state is {plain(told.get('cluster_state'))}: see CLUSTER NODES"
        )
    return Finding("ok", "window", text)


def _version(connection: psycopg.Connection) -> Finding:
    number = connection.info.server_version
    version = f"PostgreSQL {number // 10000}.{number % 10000}"
    if number < OLDEST_POSTGRESQL:
        return Finding("fail", "postgresql", f"{version} is too old; 14 or later is needed")
    return Finding("ok", "postgresql", f"{version} answers")


def _pooler(connection: psycopg.Connection, url: str) -> Iterator[Finding]:
    """Find a pooler that gives each transaction another session where the URL does not say that there is one."""
    session = "SELECT pg_backend_pid()"
    if is_pooled(url) or _first(connection, session) == (connection.info.backend_pid,):
        return
    with connections.connect(url) as other:
        before, after, others = (_first(each, session) for each in (connection, connection, other))
    if before != after or others == after:
        text = "a pooler gives each transaction another session, and the URL does not say so; end DATABASE_URL with"
        yield Finding("warn", "pooler", f"{text} ?pgbouncer=true (`hookonce docs explanation/scaling`)")


def _place(connection: psycopg.Connection) -> Finding:
    place = connections.database_identity(connection)
    if place is None:
        return Finding(
            "warn",
            "place",
            "the server does not say which database and timeline this is (a standby, or pg_control_system() is "
            "forbidden), so each duplicate is confirmed in the ledger; grant execute on that function",
        )
    return Finding("ok", "place", place)


def _clock(connection: psycopg.Connection) -> Iterator[Finding]:
    before = datetime.now(UTC)
    row = connection.execute("SELECT clock_timestamp()").fetchone()
    if row is None:
        return
    away = row[0] - (before + (datetime.now(UTC) - before) / 2)
    text = f"{abs(away).total_seconds():.1f} s between this machine and the database"
    if abs(away) <= MAX_CLOCK_SKEW:
        yield Finding("ok", "clock", text)
    else:
        yield Finding(
            "warn", "clock", f"{text}; set both by NTP, since signed times are checked against this machine's"
        )


def _settings(connection: psycopg.Connection) -> Finding:
    """Look at the settings that the role, the database or the server gives a session, and that nothing here can pin."""
    found = [(name, connection.execute(f"SHOW {name}".encode()).fetchone()) for name in _UNPINNED]
    odd = [
        f"{name} is {row[0]}, {_UNPINNED[name][1]}"
        for name, row in found
        if row and row[0] in _UNPINNED[name][0]
    ]
    limit = connection.execute("SHOW temp_file_limit").fetchone() or ("-1",)
    if limit[0] != "-1":
        odd.append(f"temp_file_limit is {limit[0]}, {_LIMITED}")
    if odd:
        return Finding(
            "warn", "settings", f"{'; '.join(odd)}; ALTER ROLE {connection.info.user} RESET what it is given"
        )
    return Finding("ok", "settings", "the role has none that changes what is kept")


def _search_path(connection: psycopg.Connection, schema: str) -> Finding:
    warning = rights.search_path(connection, schema)
    if warning:
        return Finding("warn", "search path", warning)
    return Finding("ok", "search path", "handlers cannot hit the ledger's tables by accident")


def _rights(connection: psycopg.Connection) -> Finding:
    text, is_enough = rights.works(connection)
    return Finding("ok" if is_enough else "warn", "rights", text)


def _partitions(connection: psycopg.Connection) -> Finding:
    today = datetime.now(UTC).date()
    present = partitions.days(connection)
    missing = [str(day) for n in range(MIN_DAYS_AHEAD) if (day := today + timedelta(days=n)) not in present]
    if missing:
        return Finding(
            "fail", "partitions", f"none for {', '.join(missing)}; run `hookonce db upgrade`, and a sweep"
        )
    if warning := rights.partitions(connection):
        return Finding("warn", "partitions", f"up to {max(present)}; {warning}")
    return Finding("ok", "partitions", f"up to {max(present)}")


def _backlog(connection: psycopg.Connection) -> Iterator[Finding]:
    """Look at what is due, and at what waits for a breaker, which is parked and so never due."""
    stopped = [each for each in breakers.breakers(connection) if each.is_open]
    yield from map(_stopped, stopped)
    yield from (_paused(each) for each in pauses.paused(connection) if each.by == "person")
    age = timedelta(seconds=backlog.oldest_due(connection))
    if age > MAX_BACKLOG_AGE:
        yield Finding(
            "warn", "backlog", f"an event is due for {age.seconds + age.days * 86400} s; start more workers"
        )
    elif stopped:
        yield Finding("ok", "backlog", "nothing else has been due for long")
    else:
        yield Finding("ok", "backlog", "no backlog")


def _waits(connection: psycopg.Connection) -> Finding:
    if waiting := lock_holders.waiting(connection, LONG_WAIT):
        return Finding("warn", "waits", f"{waiting}; end it: SELECT pg_terminate_backend(<process>)")
    return Finding("ok", "waits", "no session waits for another's lock")


def _paused(pause: pauses.Pause) -> Finding:
    text = f"{pause.kind} {pause.name} was paused {ago(pause.since)}; `hookonce resume` it to have its runs go on"
    return Finding("ok", "paused", text)


def _stopped(breaker: Breaker) -> Finding:
    oldest = breaker.oldest_waiting_seconds
    waiting = f"{counted(breaker.waiting, 'event')} {'waits' if breaker.waiting == 1 else 'wait'}"
    waiting += "" if oldest is None else f", the oldest came {oldest:.0f} s ago"
    return Finding(
        "warn",
        "breaker",
        f"handler {breaker.handler} was stopped {ago(breaker.opened_at)} by its circuit breaker after "
        f"{counted(breaker.failures, 'failure')} in a row: {breaker.error}; {waiting}, "
        f"one is tried {soon(breaker.try_at)}; fix the cause, or `hookonce resume` it to have all continue at once",
    )


def _first(connection: psycopg.Connection, statement: LiteralString) -> tuple[Any, ...]:
    return connection.execute(statement).fetchone() or ()


def judge_checkpoints(rows: float, indexes: float, gigabytes: float, minutes: float) -> Finding:
    """Judge how often a checkpoint comes; after each, a page that changes is logged whole. Indexes are in MB."""
    found = f"a checkpoint comes after {minutes:g} minutes or {gigabytes:.3g} GB of WAL"
    if rows < MANY_EVENTS or (gigabytes >= RARE_GIGABYTES and minutes >= RARE_MINUTES):
        return Finding("ok", "checkpoints", found)
    return Finding(
        "warn",
        "checkpoints",
        f"{found}, and after each one up to {indexes:,.0f} MB of the ids' indexes are logged whole, which may double "
        "what a new event costs; ALTER SYSTEM SET max_wal_size = '16GB' and checkpoint_timeout = '15min' "
        "(`hookonce docs explanation/scaling`)",
    )


def judge_log(rows: float, setting: str, offered: Sequence[str]) -> Finding:
    """Judge `wal_compression` and what it could be: pages that are logged whole are many in a large ledger."""
    better = next((each for each in ("zstd", "lz4") if each in offered), None)
    if rows < MANY_EVENTS or setting in {"zstd", "lz4"} or better is None:
        return Finding("ok", "log", f"wal_compression is {setting}")
    return Finding(
        "warn",
        "log",
        f"wal_compression is {setting} with {rows:,.0f} events, and after each checkpoint pages are logged whole; "
        f"ALTER SYSTEM SET wal_compression = '{better}' (`hookonce docs explanation/scaling`)",
    )


def judge_redis(info: Mapping[str, Any]) -> Iterator[Finding]:
    """Judge what Redis says of itself (INFO)."""
    text = plain(info.get("redis_version", "0"))
    version = tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())
    name = f"Valkey {plain(info['valkey_version'])}" if "valkey_version" in info else f"Redis {text}"
    if version < OLDEST_REDIS:
        yield Finding("fail", "redis", f"{name} is too old; 7.0 or later is needed")
    elif info.get("cluster_enabled"):
        yield Finding(
            "fail",
            "redis",
            f"{name} is a cluster's, which RQ can't use; name it in WINDOW_REDIS_URL, and a server in REDIS_URL",
        )
    else:
        yield Finding("ok", "redis", f"{name} answers")
    policy = plain(info.get("maxmemory_policy", "unknown"))
    if policy in GOOD_POLICIES:
        yield Finding("ok", "eviction", f"maxmemory-policy is {policy}")
    else:
        text = f"maxmemory-policy is {policy}, which may evict notifications; set noeviction or volatile-ttl"
        yield Finding("warn", "eviction", text)
    if info.get("aof_enabled"):
        yield Finding("ok", "persistence", "append-only file on")
    else:
        text = "no append-only file: a restart forgets the window; no event is lost, duplicates cost more"
        yield Finding("ok", "persistence", text)


def _workers(client: Client) -> Finding:
    """Return how many workers listen for notifications."""
    count = workers.alive(client)
    if count:
        return Finding("ok", "workers", f"{count} registered")
    return Finding("warn", "workers", "none registered; start `hookonce worker`, or events stay received")
