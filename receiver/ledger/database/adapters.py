"""How cursors of ours spell and read values: as psycopg does by itself, under the settings that our statements have.

Whatever a program registers with `psycopg.adapters` is for its own cursors, those of handlers among them. A loader that
gives a uuid or a count as text would have each claim be another's.
"""

from typing import Any

from psycopg import postgres
from psycopg.adapt import AdaptersMap
from psycopg.pq import Format
from psycopg.types.array import register_all_arrays

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


for _name in ("date", "timestamp", "timestamptz", "interval"):
    for _format in (Format.TEXT, Format.BINARY):
        _read_as_pinned(_name, ADAPTERS.get_loader(postgres.types[_name].oid, _format))
register_all_arrays(ADAPTERS)
