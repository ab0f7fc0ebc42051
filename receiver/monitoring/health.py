"""Whether this process can do its work: database and schema needed, Redis only wished for."""

from typing import Any

import psycopg

from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.schema_version import REVISION, SchemaBehind
from hookonce.receiver.redis.client import RedisUnavailable, connect, ping

_REVISION = "SELECT version_num FROM hookonce.hookonce_version"


def require_schema(url: str) -> None:
    """Raise `SchemaBehind` unless the database has at least this code's schema.

    A newer schema is accepted: migrations only add what older code can ignore. Raises `LedgerUnavailable`.
    """
    with connections.connect(url) as connection:
        _require_schema(connection)


def readiness(settings: Settings) -> tuple[int, dict[str, Any]]:
    """Return the status and document of `/readyz`: 200 ok or degraded (no Redis), 503 unready."""
    state = {"database": _database(settings.database_url), "redis": _redis(settings.redis_url)}
    if state["database"] != "ok":
        return 503, {"status": "unready", **state}
    return 200, {"status": "ok" if state["redis"] == "ok" else "degraded", **state}


def _require_schema(connection: psycopg.Connection) -> None:
    try:
        row = connection.execute(_REVISION).fetchone()
    except psycopg.errors.UndefinedTable:
        row = None
    if row is None or row[0] < REVISION:
        raise SchemaBehind(
            f"the database schema is at {row[0] if row else 'nothing'}, this version needs {REVISION}; "
            "run `hookonce db upgrade`"
        )


def _database(url: str) -> str:
    try:
        require_schema(url)
    except SchemaBehind:
        return "schema behind; run `hookonce db upgrade`"
    except psycopg.errors.InsufficientPrivilege:
        return "permission denied; see `hookonce doctor`"
    except (psycopg.Error, connections.LedgerUnavailable):
        return "unreachable"
    return "ok"


def _redis(url: str) -> str:
    try:
        with connect(url) as client:
            ping(client)
    except RedisUnavailable:
        return "unreachable"
    return "ok"
