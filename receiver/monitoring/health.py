"""Whether this process can do its work: database and schema needed, Redis only wished for."""

import threading
from datetime import timedelta
from typing import Any

import psycopg

from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.database import connections, schema_version
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.database.schema_version import SchemaBehind
from hookonce.receiver.redis.client import RedisUnavailable, connect, ping

DEADLINE = timedelta(seconds=1.9)
"""For PostgreSQL's answer, so that `/readyz` answers within 2 s."""
_TAKES_WRITES = "SELECT current_setting('transaction_read_only') = 'off' AND NOT pg_is_in_recovery()"


def require_schema(url: str) -> None:
    """Raise `SchemaBehind` unless the database has at least this code's schema.

    A newer schema is accepted: migrations only add what older code can ignore. Raises `LedgerUnavailable`.
    """
    with connections.connect(url) as connection:
        try:
            schema_version.require_schema(connection)
        except psycopg.OperationalError as error:  # a pooler answers, and its server does not
            raise LedgerUnavailable(f"PostgreSQL does not answer: {type(error).__name__}") from None


class Readiness:
    """Asks PostgreSQL and Redis over connections that it keeps; not for two at once.

    A server that hangs holds up a thread of ours, and who asks only until `DEADLINE`.
    """

    def __init__(self, settings: Settings) -> None:
        self._url = settings.database_url
        self._redis = connect(settings.redis_url)
        self._connection: psycopg.Connection | None = None
        self._asking: threading.Thread | None = None
        self._state = "unreachable"

    def look(self) -> tuple[int, dict[str, Any]]:
        """Return the status and document of `/readyz`: 200 ok or degraded (no Redis), 503 unready."""
        state = {"database": self._database_within_deadline(), "redis": self._ping()}
        if state["database"] != "ok":
            return 503, {"status": "unready", **state}
        return 200, {"status": "ok" if state["redis"] == "ok" else "degraded", **state}

    def close(self) -> None:
        """Hang up."""
        self._redis.close()
        if self._connection is not None:
            self._connection.close()

    def _database_within_deadline(self) -> str:
        if self._asking is not None and self._asking.is_alive():
            return "unreachable"
        self._asking = threading.Thread(target=self._ask, name="readiness", daemon=True)
        self._asking.start()
        self._asking.join(DEADLINE.total_seconds())
        return "unreachable" if self._asking.is_alive() else self._state

    def _ask(self) -> None:
        was_kept = self._connection is not None
        self._state = self._database()
        if was_kept and self._connection is None:  # it may have been closed long ago
            self._state = self._database()

    def _database(self) -> str:
        try:
            if self._connection is None:
                self._connection = connections.connect(self._url)
            schema_version.require_schema(self._connection)
            (takes_writes,) = self._connection.execute(_TAKES_WRITES).fetchone() or (False,)
        except SchemaBehind:
            return "schema behind; run `hookonce db upgrade`"
        except psycopg.errors.InsufficientPrivilege:
            return "permission denied; see `hookonce doctor`"
        except (psycopg.Error, connections.LedgerUnavailable):
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            return "unreachable"
        return "ok" if takes_writes else "read-only"

    def _ping(self) -> str:
        try:
            ping(self._redis)
        except RedisUnavailable:
            return "unreachable"
        return "ok"
