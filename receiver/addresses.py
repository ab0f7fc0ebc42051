"""The addresses of PostgreSQL and Redis, looked at before anybody connects.

A malformed URL makes every driver quote it, or the part it stumbled over, and that may be the password. So what
is wrong is found here and said without the value.
"""

from collections.abc import Iterator

import psycopg
from psycopg.conninfo import conninfo_to_dict

from receiver.database import libpq_url
from receiver.redis_url import is_readable


def mistakes(database_url: str, redis_url: str) -> Iterator[str]:
    """Say which address can't be one; an empty one is none, and no mistake here."""
    if not _is_postgresql(database_url):
        yield (
            "the address of PostgreSQL is no URL; expected postgresql://user:password@host:port/database, "
            "with / @ # and % in the password written as %2F %40 %23 %25; correct DATABASE_URL"
        )
    if redis_url and not is_readable(redis_url):
        yield (
            "the address of Redis is no URL; expected redis://:password@host:port/0, rediss://, unix:// or "
            "redis+sentinel://host:port,host:port/service, "
            "with / @ # and % in the password written as %2F %40 %23 %25; correct REDIS_URL"
        )


def _is_postgresql(url: str) -> bool:
    try:
        parts = conninfo_to_dict(libpq_url(url))
    except psycopg.ProgrammingError:
        return False
    ports = str(parts.get("port", "")).split(",")
    return "@" not in str(parts.get("host", ""))[1:] and all(not port or port.isdecimal() for port in ports)
