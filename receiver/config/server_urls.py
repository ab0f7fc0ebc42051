"""The addresses of PostgreSQL and Redis, looked at before anybody connects.

A malformed URL makes every driver quote it, or the part it stumbled over, and that may be the password. So what
is wrong is found here and said without the value.
"""

import re
from typing import Final
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

SENTINELS = ("redis+sentinel", "rediss+sentinel")
CLUSTERS = ("redis+cluster", "rediss+cluster")
_SENTINEL_PORT = 26379
_REDIS_PORT = 6379
_JDBC_PARAMETERS: Final = frozenset({"ssl"})
"""Parameters that libpq takes in an address besides its own."""
_INSTEAD_OF_SCHEMA: Final = (
    "; instead of schema= write options=-csearch_path%3DNAME for the tables of your handlers; "
    "the ledger's own schema is named by HOOKONCE_SCHEMA"
)
_SENTINEL_OPTIONS = {"db", "sentinel_username", "sentinel_password"}


def postgresql_url(url: str) -> str:
    """Return it. Raises: ValueError for what can't be the address of a database; an empty one may be."""
    if unknown := _unknown_parameters(url):
        raise ValueError(
            f"DATABASE_URL has parameters that PostgreSQL does not know: {', '.join(unknown)}; remove them"
            f"{_INSTEAD_OF_SCHEMA if 'schema' in unknown else ''}"
        )
    if not _is_postgresql(url):
        raise ValueError(
            "the address of PostgreSQL is not one; expected postgresql://user:password@host:port/database, "
            "with / @ # and % in the password written as %2F %40 %23 %25; correct DATABASE_URL"
        )
    return url


def queue_url(url: str) -> str:
    """Return it. Raises: ValueError for what can't be the address of a Redis that has the queue."""
    if is_cluster(url):
        raise ValueError(
            "REDIS_URL names a Redis Cluster, over whose nodes RQ can't spread its queue; name the cluster in "
            "WINDOW_REDIS_URL, for window and limits, and a Redis of its own in REDIS_URL, for the queue"
        )
    if url and not is_redis(url):
        raise ValueError(
            "the address of Redis is not one; expected redis://:password@host:port/0, rediss://, unix:// or "
            "redis+sentinel://host:port,host:port/service, "
            "with / @ # and % in the password written as %2F %40 %23 %25; correct REDIS_URL"
        )
    return url


def window_url(url: str) -> str:
    """Return it. Raises: ValueError for what can't be the address of the window's Redis."""
    if url and not is_redis(url):
        raise ValueError(
            "the address of the window's Redis is not one; expected redis+cluster://user:password@host:port,host:port, "
            "rediss+cluster://, or an address as REDIS_URL takes; correct WINDOW_REDIS_URL"
        )
    return url


def _unknown_parameters(url: str) -> list[str]:
    """Return the names of parameters that libpq refuses, of an address that is right without them.

    A ? in the password begins no parameters: what follows it has the @ before the host.
    """
    address, _, query = libpq_url(url).partition("?")
    if "@" in query or not _is_postgresql(address):
        return []
    known = {each.keyword.decode() for each in Conninfo.get_defaults()} | _JDBC_PARAMETERS
    names = dict.fromkeys(unquote(pair.partition("=")[0]) for pair in query.split("&") if pair)
    return [name if name.isidentifier() else "(not a name)" for name in names if name not in known]


def _is_postgresql(url: str) -> bool:
    try:
        parts = conninfo_to_dict(libpq_url(url))
    except psycopg.ProgrammingError:
        return False
    ports = str(parts.get("port", "")).split(",")
    return "@" not in str(parts.get("host", ""))[1:] and all(not port or port.isdecimal() for port in ports)


def is_redis(url: str) -> bool:
    """Whether a URL names a Redis, Sentinels and a service, or a cluster; redis-py is slow to import."""
    try:
        parts = split(url)
        if parts.scheme in SENTINELS:
            return _is_of_sentinels(parts)
        if parts.scheme in CLUSTERS:
            return bool(hosts_of(parts)) and not parts.path.strip("/") and not parts.query
        is_port = parts.scheme == "unix" or parts.port != 0  # a port that is not a number raises
    except ValueError:
        return False
    return parts.scheme in {"redis", "rediss", "unix"} and is_port


def split(url: str) -> SplitResult:
    """Split an address as `urlsplit` does, which refuses several hosts where one is in brackets. Raises: ValueError."""
    scheme, mark, rest = url.partition("://")
    if scheme not in SENTINELS + CLUSTERS:
        return urlsplit(url)
    hosts = re.split("[/?#]", rest, maxsplit=1)[0]
    return urlsplit(f"{scheme}{mark}{rest[len(hosts) :]}")._replace(netloc=hosts)


def is_cluster(url: str) -> bool:
    """Whether a URL names a Redis Cluster."""
    return url.partition("://")[0] in CLUSTERS


def _is_of_sentinels(parts: SplitResult) -> bool:
    options = sentinel_options(parts)
    return bool(hosts_of(parts) and parts.path.strip("/")) and options.get("db", "0").isdecimal()


def sentinel_options(parts: SplitResult) -> dict[str, str]:
    """Return the parameters of an address of Sentinels. Raises: ValueError for one that is not known."""
    options = {
        name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()
    }
    if options.keys() - _SENTINEL_OPTIONS:
        raise ValueError("an unknown parameter in the address of Redis")
    return options


def hosts_of(parts: SplitResult) -> list[tuple[str, int]]:
    """Return the hosts and ports of an address of Sentinels or of a cluster. Raises: ValueError if one has none."""
    usual_port = _SENTINEL_PORT if parts.scheme in SENTINELS else _REDIS_PORT
    hosts = []
    for each in parts.netloc.rpartition("@")[2].split(","):
        host, _, port = each.rpartition(":") if not each.endswith("]") and ":" in each else (each, "", "")
        hosts.append((host.strip("[]"), int(port or usual_port)))
    if not all(host for host, _ in hosts):
        raise ValueError("a server without a host")
    return hosts


_POOLED = "pgbouncer=true"
USUAL_SCHEMA = "hookonce"
_SCHEMA = "hookonce_schema="
_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_OURS = (_POOLED, _SCHEMA)
"""How parameters of a URL begin that are for us and not for libpq."""


def libpq_url(url: str) -> str:
    """Bring the spellings of a PostgreSQL URL (Heroku's, SQLAlchemy's) to the one libpq reads."""
    scheme, separator, rest = url.partition("://")
    if scheme == "postgres" or scheme.startswith("postgresql+"):
        scheme = "postgresql"
    path, mark, query = rest.partition("?")
    if mark:
        rest = path + mark + "&".join(pair for pair in query.split("&") if not pair.startswith(_OURS))
    return scheme + separator + rest.removesuffix("?")


def is_pooled(url: str) -> bool:
    """Whether a URL says that it leads through PgBouncer, or the like, in transaction mode."""
    return _POOLED in url.partition("?")[2].split("&")


def with_schema(url: str, schema: str) -> str:
    """Return the URL of the same database that says which schema the ledger lies in, unless it is the usual one."""
    if not url or schema == USUAL_SCHEMA:
        return url
    return f"{url}{'&' if '?' in url else '?'}{_SCHEMA}{schema}"


def schema_of(url: str) -> str:
    """Return the schema that a URL names: the last one, or the usual one where it names none."""
    named = [pair[len(_SCHEMA) :] for pair in url.partition("?")[2].split("&") if pair.startswith(_SCHEMA)]
    return named[-1] if named else USUAL_SCHEMA


def schema_name(name: str) -> str:
    """Return it. Raises: ValueError for what can't be the name of a schema."""
    if not _SCHEMA_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} can't be the name of a schema; expected lower-case letters, digits and _, "
            "not beginning with a digit or pg_, 63 at most"
        )
    return name
