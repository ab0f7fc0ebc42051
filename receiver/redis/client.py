"""From a URL to a client: of one Redis, of whichever Redis the Sentinels name as primary just now, or of a cluster.

    redis://:password@host:6379/0 · rediss://… · unix://…
    redis+sentinel://user:password@sentinel1:26379,sentinel2:26379/service?db=0&sentinel_password=…  (or rediss+…)
    redis+cluster://user:password@node1:6379,node2:6379  (or rediss+…)

A failover may forget writes that were acknowledged. That costs us speed only: the ledger decides, the sweep notifies.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any, cast
from urllib.parse import unquote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from hookonce.receiver.config.server_urls import CLUSTERS, SENTINELS, hosts_of, sentinel_options, split
from hookonce.receiver.processes.waits import IN_THREAD, Waits, run
from hookonce.receiver.redis.bounded_socket import bounding, is_quiet
from hookonce.receiver.redis.cluster import Cluster

_WORD = re.compile(r"[A-Za-z]{1,20}")

Client = redis.Redis
"""What `connect` returns; nobody else needs the library to say so."""


class RedisUnavailable(Exception):  # noqa: N818  a state of the world that costs speed and nothing else
    """Redis did not answer, not in time, or refused; says which error it was, `refusal` what Redis called it."""

    def __init__(self, text: str, refusal: str = "") -> None:
        super().__init__(text)
        self.refusal = refusal


@contextmanager
def asking() -> Iterator[None]:
    """Turn every error of Redis, of the library and of the network into `RedisUnavailable`.

    Every other one too: an answer that is none (a number of letters, lists in lists without end) makes the library
    raise whatever it comes to. What Redis calls its refusal is a word, or it is not repeated.
    """
    try:
        yield
    except RedisUnavailable:
        raise
    except redis.ResponseError as error:
        word = str(error).split(" ", 1)[0]
        refusal = word if _WORD.fullmatch(word) else "an error"
        raise RedisUnavailable(type(error).__name__, refusal) from error
    except Exception as error:
        raise RedisUnavailable(type(error).__name__) from error


_RESP = 2
_FOR_ALL = frozenset({"retry", "redis_connect_func"})
"""Options that Sentinels are asked with too, besides those of the socket."""


def client(url: str, **options: Any) -> redis.Redis:  # noqa: ANN401  redis-py's own options
    """Return a client; nothing is connected yet. Sentinels are asked with the timeouts of the client itself.

    It speaks RESP2, unless the URL says `protocol=3`: there a server pushes nothing unasked that redis-py would act on.

    Raises: ValueError if the URL can't be read.
    """
    parts = split(url)
    if parts.scheme in CLUSTERS:
        return cast("redis.Redis", Cluster(url, protocol=_RESP, **options))
    if parts.scheme not in SENTINELS:
        return redis.Redis.from_url(url, protocol=_RESP, **options)
    parameters = sentinel_options(parts)
    ours = {name: value for name, value in options.items() if name.startswith("socket_") or name in _FOR_ALL}
    secure = {"ssl": True} if parts.scheme.startswith("rediss") else {}
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    sentinel_login = {
        name.removeprefix("sentinel_"): value for name, value in parameters.items() if name != "db"
    }
    kwargs = {**ours, **secure, **sentinel_login, "protocol": _RESP}
    sentinels = Sentinel(hosts_of(parts), sentinel_kwargs=kwargs)  # type: ignore[no-untyped-call]
    primary: redis.Redis = sentinels.master_for(  # type: ignore[no-untyped-call]
        unquote(parts.path.strip("/")),
        username=unquote(user) or None,
        password=unquote(password) or None,
        db=int(parameters.get("db", "0")),
        protocol=_RESP,
        **secure,
        **options,
    )
    return primary


def disconnect_if_replica(client: redis.Redis, error: BaseException | None) -> None:
    """Hang up if `error` says that the server has become a replica: its name may lead to the new primary by now."""
    if isinstance(client, Cluster):
        client.reread()
    elif isinstance(error, redis.exceptions.ReadOnlyError):
        client.connection_pool.disconnect(inuse_connections=False)


REDIS_TIMEOUT = timedelta(milliseconds=250)
"""For a whole answer, and for a connection."""
ANSWER_SIZE = 2 * 1024**2
"""Bytes of an answer; that to a batch of a thousand events has some sixty thousand, a stored answer up to a million."""


def connect(url: str, answer_size: int = ANSWER_SIZE) -> redis.Redis:
    """Return the receiver's Redis client: short timeouts, bounded answers and no retries.

    A client that retries SET NX after a lost reply would meet its own claim.
    """
    span = REDIS_TIMEOUT.total_seconds()
    return client(
        url,
        socket_timeout=span,
        socket_connect_timeout=span,
        redis_connect_func=bounding(span, answer_size),
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )


class Script:
    """A script of ours on one Redis, called by its digest; Redis is never asked what it is called.

    It keeps its connections: to take one out of the library's pool, which looks after it each time, costs us as much as
    the question.
    """

    def __init__(self, client: redis.Redis, text: str) -> None:
        self.client = client
        self._text = text
        self._digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        self._kept: list[Any] = []

    def __call__(self, keys: Sequence[str], values: Sequence[Any]) -> Any:  # noqa: ANN401  Redis's answer
        """Run it, the calling thread waiting for it; as `ask`."""
        return run(self.ask(keys, values, IN_THREAD))

    async def ask(self, keys: Sequence[str], values: Sequence[Any], waits: Waits) -> Any:  # noqa: ANN401
        """Run it; where Redis does not know it, hand it over. Raises what the library raises (`asking`).

        On a cluster the keys are in one slot.
        """
        if isinstance(self.client, Cluster):
            return await waits.ask_server(partial(self.client.eval, self._text, len(keys), *keys, *values))
        given = _packed([len(keys), *keys, *values])
        try:
            return await self._answer(b"EVALSHA", self._digest, given, len(keys) + len(values), waits)
        except redis.exceptions.NoScriptError:
            return await self._answer(b"EVAL", self._text, given, len(keys) + len(values), waits)

    async def _answer(self, command: bytes, script: str, given: bytes, number: int, waits: Waits) -> Any:  # noqa: ANN401
        """Ask; the library packs each of a batch's values at three times the cost."""
        pool = self.client.connection_pool
        connection = self._kept_connection(pool) or await waits.ask_server(pool.get_connection)
        command_begins = b"*%d\r\n" % (number + 3) + _packed([command, script])
        is_kept = False
        try:
            connection.send_packed_command([command_begins + given])
            # The library then reads what is there, and waits no longer than a bounded socket does.
            if not await waits.readable(connection._sock.fileno(), REDIS_TIMEOUT.total_seconds()):  # noqa: SLF001
                raise redis.exceptions.TimeoutError("no answer in time")
            answer = connection.read_response()
            is_kept = True
        except redis.ResponseError as error:  # an answer too
            is_kept = not isinstance(error, redis.exceptions.ReadOnlyError)
            raise
        finally:
            if not is_kept:
                connection.disconnect()
            if is_kept and not isinstance(
                pool, SentinelConnectionPool
            ):  # that one leaves a primary that was replaced
                self._kept.append(connection)
            else:
                pool.release(connection)
        return answer

    def _kept_connection(self, pool: Any) -> Any:  # noqa: ANN401  the library's, of any kind
        """Return a connection that nobody uses, and on which nothing has come since: else the server hung up."""
        while self._kept:
            with suppress(IndexError):  # another thread took it
                connection = self._kept.pop()
                if is_quiet(connection):
                    return connection
                connection.disconnect()
                pool.release(connection)
        return None


def _packed(values: Sequence[Any]) -> bytes:
    """Return values as a command of RESP has them."""
    packed: list[bytes] = []
    for each in values:
        encoded = each if each.__class__ is bytes else str(each).encode()
        packed += (b"$%d\r\n" % len(encoded), encoded, b"\r\n")
    return b"".join(packed)


def ping(client: redis.Redis) -> bool:
    """Whether Redis answers as it should. Raises `RedisUnavailable`."""
    with asking():
        return bool(client.ping())


def write(client: redis.Redis, key: str, ttl: timedelta) -> None:
    """Write as a receiver does: a Redis that only answers pings is of no use. Raises `RedisUnavailable`."""
    try:
        with asking():
            client.set(key, 1, ex=ttl)
    except RedisUnavailable as error:
        disconnect_if_replica(client, error.__cause__)
        raise


def info(client: redis.Redis) -> dict[str, Any]:
    """Return what Redis says of itself. Raises `RedisUnavailable`."""
    with asking():
        said = client.info()
        if not isinstance(said, dict):
            raise RedisUnavailable("an answer that says nothing of Redis")
        return said
