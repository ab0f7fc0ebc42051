"""From REDIS_URL to a client: of one Redis, or of whichever Redis the Sentinels name as primary at the moment.

    redis://:password@host:6379/0 · rediss://… · unix://…
    redis+sentinel://user:password@sentinel1:26379,sentinel2:26379/service?db=0&sentinel_password=…  (or rediss+…)

A failover may forget writes that were acknowledged. That costs us speed only: the ledger decides, the sweep rings.
"""

from typing import Any
from urllib.parse import unquote, urlsplit

import redis
from redis.sentinel import Sentinel

from receiver.addresses import SENTINELS, sentinel_hosts, sentinel_options


def client(url: str, **options: Any) -> redis.Redis:  # noqa: ANN401  redis-py's own options
    """Make a client; nothing is connected yet. Sentinels are asked with the timeouts of the client itself.

    Raises: ValueError if the URL can't be read.
    """
    parts = urlsplit(url)
    if parts.scheme not in SENTINELS:
        return redis.Redis.from_url(url, **options)
    told = sentinel_options(parts)
    ours = {name: value for name, value in options.items() if name.startswith("socket_") or name == "retry"}
    secure = {"ssl": True} if parts.scheme.startswith("rediss") else {}
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    asked = {name.removeprefix("sentinel_"): value for name, value in told.items() if name != "db"}
    kwargs = {**ours, **secure, **asked}
    sentinels = Sentinel(sentinel_hosts(parts), sentinel_kwargs=kwargs)  # type: ignore[no-untyped-call]
    primary: redis.Redis = sentinels.master_for(  # type: ignore[no-untyped-call]
        unquote(parts.path.strip("/")),
        username=unquote(user) or None,
        password=unquote(password) or None,
        db=int(told.get("db", "0")),
        **secure,
        **options,
    )
    return primary


def leave_replica(client: redis.Redis, error: Exception) -> None:
    """Hang up if `error` says that the server has become a replica: its name may lead to the new primary by now."""
    if isinstance(error, redis.exceptions.ReadOnlyError):
        client.connection_pool.disconnect(inuse_connections=False)
