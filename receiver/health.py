"""Whether this process can do its work: database and schema needed, Redis only wished for."""

from typing import Any

import psycopg
import redis

from receiver import database, schema
from receiver.settings import Settings
from receiver.window import connect

_REVISION = "SELECT version_num FROM hookonce_version"


def readiness(settings: Settings) -> tuple[int, dict[str, Any]]:
    """Give the status and document of `/readyz`: 200 ok or degraded (no Redis), 503 unready."""
    state = {"database": _database(settings.database_url), "redis": _redis(settings.redis_url)}
    if state["database"] != "ok":
        return 503, {"status": "unready", **state}
    return 200, {"status": "ok" if state["redis"] == "ok" else "degraded", **state}


def _database(url: str) -> str:
    try:
        with database.connect(url) as connection:
            row = connection.execute(_REVISION).fetchone()
    except psycopg.errors.UndefinedTable:
        return "schema missing; run `hookonce db upgrade`"
    except (psycopg.Error, database.LedgerUnavailable):
        return "unreachable"
    if row is None or row[0] < schema.REVISION:
        return "schema behind; run `hookonce db upgrade`"
    return "ok"


def _redis(url: str) -> str:
    try:
        connect(url).ping()
    except (redis.RedisError, OSError):
        return "unreachable"
    return "ok"
