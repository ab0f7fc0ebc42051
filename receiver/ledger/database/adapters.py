"""How cursors of ours spell and read values: as psycopg does by itself.

Whatever a program registers with `psycopg.adapters` is for its own cursors, those of handlers among them. A loader that
gives a uuid or a count as text would have each claim be another's.
"""

from psycopg import postgres
from psycopg.adapt import AdaptersMap
from psycopg.types.array import register_all_arrays

ADAPTERS = AdaptersMap(types=postgres.types)
postgres.register_default_adapters(ADAPTERS)
register_all_arrays(ADAPTERS)
