"""What `hookonce doctor` asks PostgreSQL and Redis."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

import psycopg
import redis

from receiver import database, health, workers
from receiver.database import LedgerUnavailable
from receiver.ledger import alerts, figures, upkeep
from receiver.revision import SchemaBehind
from receiver.window import connect

OLDEST_POSTGRESQL = 140000
OLDEST_REDIS = (7, 0)
SKEW = timedelta(seconds=2)
BACKLOG = timedelta(minutes=1)
DAYS_AHEAD = 3
GOOD_POLICIES = frozenset({"noeviction", "volatile-ttl"})


class Finding(NamedTuple):
    """What a check found, and what to do about it."""

    level: Literal["ok", "warn", "fail"]
    check: str
    text: str


def postgresql(url: str) -> Iterator[Finding]:
    """Check the database at `url`: version, schema, partitions, backlog, clock."""
    if not url:
        yield Finding(
            "fail", "postgresql", "no address; set DATABASE_URL, or start `hookonce dev` in this directory"
        )
        return
    try:
        with database.connect(url) as connection:
            yield _version(connection)
            yield _place(connection)
            yield from _clock(connection)
            health.require_schema(url)
            yield Finding("ok", "schema", "up to date")
            yield _partitions(connection)
            yield _backlog(connection)
            for alert in alerts.open_alerts(connection):
                yield Finding("warn", "alert", f"{alert.kind} {alert.subject}: {alert.detail}")
    except SchemaBehind as error:
        yield Finding("fail", "schema", str(error))
    except (psycopg.Error, LedgerUnavailable) as error:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        yield Finding("fail", "postgresql", f"{text}; start it, or correct DATABASE_URL")


def redis_server(url: str) -> Iterator[Finding]:
    """Check Redis at `url`: version, eviction, cluster, persistence, and the workers registered there."""
    if not url:
        yield Finding("fail", "redis", "no address; set REDIS_URL, or start `hookonce dev` in this directory")
        return
    try:
        with connect(url) as client:
            yield from judge_redis(client.info())
            yield _workers(client)
    except (redis.RedisError, OSError) as error:
        text = (
            f"does not answer ({type(error).__name__}); nothing is lost, but start it, or correct REDIS_URL"
        )
        yield Finding("fail", "redis", text)


def _version(connection: psycopg.Connection) -> Finding:
    number = connection.info.server_version
    version = f"PostgreSQL {number // 10000}.{number % 10000}"
    if number < OLDEST_POSTGRESQL:
        return Finding("fail", "postgresql", f"{version} is too old; 14 or later is needed")
    return Finding("ok", "postgresql", f"{version} answers")


def _place(connection: psycopg.Connection) -> Finding:
    place = database.where_am_i(connection)
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
    if abs(away) <= SKEW:
        yield Finding("ok", "clock", text)
    else:
        yield Finding(
            "warn", "clock", f"{text}; set both by NTP, since signed times are checked against this machine's"
        )


def _partitions(connection: psycopg.Connection) -> Finding:
    today = datetime.now(UTC).date()
    present = upkeep.days(connection)
    missing = [str(day) for n in range(DAYS_AHEAD) if (day := today + timedelta(days=n)) not in present]
    if missing:
        return Finding(
            "fail", "partitions", f"none for {', '.join(missing)}; run `hookonce db upgrade`, and a sweep"
        )
    return Finding("ok", "partitions", f"up to {max(present)}")


def _backlog(connection: psycopg.Connection) -> Finding:
    age = timedelta(seconds=figures.oldest_due(connection))
    if age > BACKLOG:
        return Finding(
            "warn", "backlog", f"an event is due for {age.seconds + age.days * 86400} s; start more workers"
        )
    return Finding("ok", "backlog", "nothing has been due for long")


def judge_redis(info: Mapping[str, Any]) -> Iterator[Finding]:
    """Judge what Redis says of itself (INFO)."""
    said = str(info.get("redis_version", "0"))
    version = tuple(int(part) for part in said.split(".")[:2] if part.isdecimal())
    name = f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {said}"
    if version < OLDEST_REDIS:
        yield Finding("fail", "redis", f"{name} is too old; 7.0 or later is needed")
    elif info.get("cluster_enabled"):
        yield Finding(
            "fail", "redis", f"{name} is a cluster, which RQ can't use; use a single server or Sentinel"
        )
    else:
        yield Finding("ok", "redis", f"{name} answers")
    policy = str(info.get("maxmemory_policy", "unknown"))
    if policy in GOOD_POLICIES:
        yield Finding("ok", "eviction", f"maxmemory-policy is {policy}")
    else:
        text = f"maxmemory-policy is {policy}, which may evict rings; set noeviction or volatile-ttl"
        yield Finding("warn", "eviction", text)
    if info.get("aof_enabled"):
        yield Finding("ok", "persistence", "append-only file on")
    else:
        text = "no append-only file: a restart forgets the window and the rings; no event is lost, duplicates cost more"
        yield Finding("ok", "persistence", text)


def _workers(client: redis.Redis) -> Finding:
    """Count the workers that listen for the bell."""
    count = workers.alive(client)
    if count:
        return Finding("ok", "workers", f"{count} registered")
    return Finding("warn", "workers", "none registered; start `hookonce worker`, or events stay received")
