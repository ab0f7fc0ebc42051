"""From REDIS_URL to a client: of one Redis, or of whichever Redis the Sentinels name as primary at the moment.

    redis://:password@host:6379/0 · rediss://… · unix://…
    redis+sentinel://user:password@sentinel1:26379,sentinel2:26379/service?db=0&sentinel_password=…  (or rediss+…)

A failover may forget writes that were acknowledged. That costs us speed only: the ledger decides, the sweep rings.
"""

from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

import redis
from redis.connection import parse_url
from redis.sentinel import Sentinel

_SCHEMES = ("redis+sentinel", "rediss+sentinel")
_PORT = 26379
_KNOWN = {"db", "sentinel_username", "sentinel_password"}


def client(url: str, **options: Any) -> redis.Redis:  # noqa: ANN401  redis-py's own options
    """Make a client; nothing is connected yet. Sentinels are asked with the timeouts of the client itself.

    Raises: ValueError if the URL can't be read.
    """
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES:
        return redis.Redis.from_url(url, **options)
    told = _told(parts)
    ours = {name: value for name, value in options.items() if name.startswith("socket_") or name == "retry"}
    secure = {"ssl": True} if parts.scheme.startswith("rediss") else {}
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    asked = {name.removeprefix("sentinel_"): value for name, value in told.items() if name != "db"}
    kwargs = {**ours, **secure, **asked}
    sentinels = Sentinel(_hosts(parts), sentinel_kwargs=kwargs)  # type: ignore[no-untyped-call]
    primary: redis.Redis = sentinels.master_for(  # type: ignore[no-untyped-call]
        unquote(parts.path.strip("/")),
        username=unquote(user) or None,
        password=unquote(password) or None,
        db=int(told.get("db", "0")),
        **secure,
        **options,
    )
    return primary


def is_readable(url: str) -> bool:
    """Tell whether a URL names a Redis, or Sentinels and a service."""
    try:
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES:
            parse_url(url)  # type: ignore[no-untyped-call]
            return True
        told = _told(parts)
        return bool(_hosts(parts) and parts.path.strip("/")) and told.get("db", "0").isdecimal()
    except ValueError:
        return False


def _told(parts: SplitResult) -> dict[str, str]:
    told = {
        name: values[-1] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()
    }
    if told.keys() - _KNOWN:
        raise ValueError("an unknown parameter in the address of Redis")
    return told


def _hosts(parts: SplitResult) -> list[tuple[str, int]]:
    hosts = []
    for each in parts.netloc.rpartition("@")[2].split(","):
        host, _, port = each.rpartition(":") if not each.endswith("]") and ":" in each else (each, "", "")
        hosts.append((host.strip("[]"), int(port or _PORT)))
    if not all(host for host, _ in hosts):
        raise ValueError("a Sentinel without a host")
    return hosts
