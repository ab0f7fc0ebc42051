"""How cursors of ours spell and read values: as psycopg does by itself, under the settings that our statements have.

Whatever a program registers with `psycopg.adapters` is for its own cursors, those of handlers among them. A loader that
gives a uuid or a count as text would have each claim be another's. A moment that Python has no name for, infinity or
one before the year 1, is the nearest that every time zone has: it must not fail the fetch of other rows.
"""

from datetime import UTC, datetime
from typing import Any

from psycopg import DataError, postgres
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.pq import Format
from psycopg.types.array import register_all_arrays

EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)
ADAPTERS = AdaptersMap(types=postgres.types)
postgres.register_default_adapters(ADAPTERS)


def _read_as_pinned(type_name: str, kind: Any) -> None:  # noqa: ANN401  psycopg's loaders are of two languages
    """Read a type as under `pinned.SETTINGS`, which is what a loader takes for granted without a connection.

    With one it asks what the session has now; behind a pooler the transaction that a row came from has ended by then.
    """

    class PinnedLoader:
        format = kind.format

        def __new__(cls, oid: int, _connection: object = None) -> Any:  # noqa: ANN401  same
            return kind(oid, None)

    ADAPTERS.register_loader(type_name, PinnedLoader)  # type: ignore[arg-type]


def _read_clamped(kind: Any) -> None:  # noqa: ANN401  same
    """Have what reads moments clamp those that it can't."""

    class ClampingLoader(Loader):
        format = kind.format

        def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
            super().__init__(oid, context)
            self._read = kind(oid, None).load

        def load(self, data: Buffer) -> Any:  # noqa: ANN401  the base's signature
            try:
                return self._read(data)
            except DataError as error:
                return EARLIEST if "too small" in str(error) else LATEST

    ADAPTERS.register_loader("timestamptz", ClampingLoader)


for _name in ("date", "timestamp", "timestamptz", "interval"):
    for _format in (Format.TEXT, Format.BINARY):
        _read_as_pinned(_name, ADAPTERS.get_loader(postgres.types[_name].oid, _format))
for _format in (Format.TEXT, Format.BINARY):
    _read_clamped(ADAPTERS.get_loader(postgres.types["timestamptz"].oid, _format))
register_all_arrays(ADAPTERS)
