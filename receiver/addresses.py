"""The addresses of PostgreSQL and Redis, looked at before anybody connects.

A malformed URL makes every driver quote it, or the part it stumbled over, and that may be the password. So what
is wrong is found here and said without the value.
"""

from collections.abc import Iterator
from urllib.parse import SplitResult, parse_qs, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from receiver.database import libpq_url

SENTINELS = ("redis+sentinel", "rediss+sentinel")
_SENTINEL_PORT = 26379
_SENTINEL_OPTIONS = {"db", "sentinel_username", "sentinel_password"}


def mistakes(database_url: str, redis_url: str) -> Iterator[str]:
    """Say which address can't be one; an empty one is none, and no mistake here."""
    if not _is_postgresql(database_url):
        yield (
            "the address of PostgreSQL is no URL; expected postgresql://user:password@host:port/database, "
            "with / @ # and % in the password written as %2F %40 %23 %25; correct DATABASE_URL"
        )
    if redis_url and not is_redis(redis_url):
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


def is_redis(url: str) -> bool:
    """Tell whether a URL names a Redis, or Sentinels and a service. redis-py, which would know, is slow to import."""
    try:
        parts = urlsplit(url)
        if parts.scheme in SENTINELS:
            return _is_of_sentinels(parts)
        is_port = parts.scheme == "unix" or parts.port != 0  # a port that is no number raises
    except ValueError:
        return False
    return parts.scheme in {"redis", "rediss", "unix"} and is_port


def _is_of_sentinels(parts: SplitResult) -> bool:
    told = sentinel_options(parts)
    return bool(sentinel_hosts(parts) and parts.path.strip("/")) and told.get("db", "0").isdecimal()


def sentinel_options(parts: SplitResult) -> dict[str, str]:
    """Give the parameters of an address of Sentinels. Raises: ValueError for one that is not known."""
    told = {
        name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()
    }
    if told.keys() - _SENTINEL_OPTIONS:
        raise ValueError("an unknown parameter in the address of Redis")
    return told


def sentinel_hosts(parts: SplitResult) -> list[tuple[str, int]]:
    """Give the hosts and ports of an address of Sentinels. Raises: ValueError if one has none."""
    hosts = []
    for each in parts.netloc.rpartition("@")[2].split(","):
        host, _, port = each.rpartition(":") if not each.endswith("]") and ":" in each else (each, "", "")
        hosts.append((host.strip("[]"), int(port or _SENTINEL_PORT)))
    if not all(host for host, _ in hosts):
        raise ValueError("a Sentinel without a host")
    return hosts
