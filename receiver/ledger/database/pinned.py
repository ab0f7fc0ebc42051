"""The settings of a session that its driver, or a statement of ours, relies on; a role or a database may carry others.

A connection of ours has them from its start. Behind a pooler no session is ours: there each transaction begins with
them, and a statement by itself is a transaction too.
"""

from collections.abc import Mapping
from typing import Any, Self

import psycopg
from psycopg import generators
from psycopg.abc import PQGen, QueryNoTemplate
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

SETTINGS: Mapping[str, str] = {
    "timezone": "UTC",
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "quote_all_identifiers": "off",
    "exit_on_error": "off",
    "client_min_messages": "notice",  # a server that ends its sessions after a crash says so in a warning
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
}
OPTIONS = " ".join(f"-c {name}=" + value.replace(" ", r"\ ") for name, value in SETTINGS.items())
"""All of them, as libpq takes them for a connection's start."""


def statement(settings: Mapping[str, str], *, is_local: bool = True) -> str:
    """Return the statement that sets them, for one transaction or for its session."""
    calls = (f"set_config('{name}', '{value}', {is_local})" for name, value in settings.items())
    return f"SELECT {', '.join(calls)}"


PIN = statement(SETTINGS)
"""To be sent first in a transaction behind a pooler, which is begun as READ COMMITTED."""
_PIN_BEFORE_ANY_QUERY = "".join(
    f"; SET LOCAL {name} = '{value}'" for name, value in SETTINGS.items()
).encode()
"""The same where the level of the transaction may yet be set."""


class PinnedConnection(psycopg.Connection[Any]):
    """A connection whose transactions begin with these settings where it leads through a pooler.

    psycopg has no hook for the begin of a transaction; what notices its change is `tests/ledger/test_pinned.py`.
    """

    @classmethod
    def connect(cls, *args: Any, **options: Any) -> Self:  # noqa: ANN401  psycopg's
        """Open a connection."""
        connection = super().connect(*args, **options)
        if connection.prepare_threshold is None:
            connection.__dict__["_exec_command"] = connection._exec_pinned  # noqa: SLF001  our own
        return connection

    def _exec_pinned(
        self, command: QueryNoTemplate, result_format: Format = Format.TEXT
    ) -> PQGen[PGresult | None]:
        if not (isinstance(command, bytes) and command.startswith(b"BEGIN")):
            return (yield from super()._exec_command(command, result_format))
        if self._pipeline:
            yield from super()._exec_command(command, result_format)
            return (yield from super()._exec_command(PIN.encode()))
        self._check_connection_ok()
        self.pgconn.send_query(command + _PIN_BEFORE_ANY_QUERY)
        results: list[PGresult] = yield from generators.execute(self.pgconn)
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result)
        return results[0]
