"""The dedup window: Redis remembers the ids of recent events, so that a fast retry costs no insert.

Redis keys used here:

    hookonce:<place>:{<source>:<event id>}
        "claimed"                 a receiver is storing it (60 s)
        "accepted:<fingerprint>"  the ledger of <place> holds it (for as long as the source's window says)

`<place>` names database and timeline (`database.where_am_i`), so what was written for a primary that has
since been replaced is never believed. Only "accepted" with the same fingerprint means duplicate; no
answer, "claimed" and everything else mean: ask the ledger.

A batch is one command: a script, because packing and parsing a command per event costs us ten times what
it costs Redis.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from receiver import redis_url
from receiver.breaker import Breaker

TIMEOUT = timedelta(milliseconds=250)
CLAIM = timedelta(seconds=60)
LONGEST_ID = 200
PAGE = 1000

_CLAIM = """
-- KEYS: entries. ARGV: how long a claim holds (ms). What was there before, for each; nothing if it is ours now.
local found = {}
for n, key in ipairs(KEYS) do found[n] = redis.call('SET', key, 'claimed', 'NX', 'GET', 'PX', ARGV[1]) end
return found
"""
_SETTLE = """
-- KEYS: RQ's queue, then entries. ARGV: value and time to live (ms) of each entry. How many rings wait.
for n = 2, #KEYS do redis.call('SET', KEYS[n], ARGV[2 * n - 3], 'PX', ARGV[2 * n - 2]) end
return redis.call('LLEN', KEYS[1])
"""


class WindowUnavailable(Exception):  # noqa: N818  a state of the world that costs speed and nothing else
    """Redis did not answer, or not in time."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event as the window knows it; `ttl` is how long it is remembered once accepted."""

    source: str
    event_id: str
    fingerprint: bytes
    ttl: timedelta


def connect(url: str) -> redis.Redis:
    """Make the receiver's Redis client: short timeouts and no retries.

    A client that retries SET NX after a lost reply would meet its own claim.
    """
    span = TIMEOUT.total_seconds()
    return redis_url.client(
        url,
        socket_timeout=span,
        socket_connect_timeout=span,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )


class Window:
    """The window on one Redis, behind a circuit breaker."""

    def __init__(self, client: redis.Redis, breaker: Breaker) -> None:
        self._client = client
        self._breaker = breaker
        self._claim = client.register_script(_CLAIM)
        self._settle = client.register_script(_SETTLE)

    def claim(self, place: str, entries: Sequence[Entry]) -> list[bool]:
        """Claim every entry in one round trip; tell which are known to be in the ledger with this body.

        Raises `WindowUnavailable`; a claim may then have been set all the same, which harms nobody.
        """
        keys = [_key(place, entry) for entry in entries]
        found = self._ask(lambda: self._claim(keys, [_ms(CLAIM)]))
        return [answer == _accepted(entry.fingerprint) for entry, answer in zip(entries, found, strict=True)]

    def settle(self, place: str | None, entries: Sequence[Entry], queue: str) -> int:
        """Remember these entries as stored, and tell how many rings wait in RQ's `queue`; one round trip.

        Call after COMMIT, with the fingerprint of the row. Where the place is unknown nothing is remembered.
        Raises `WindowUnavailable`.
        """
        keys: list[str] = [queue]
        values: list[bytes | int] = []
        if place is not None:
            for entry in entries:
                keys.append(_key(place, entry))
                values += [_accepted(entry.fingerprint), _ms(entry.ttl)]
        return int(self._ask(lambda: self._settle(keys, values)))

    def _ask(self, question: Callable[[], Any]) -> Any:  # noqa: ANN401  Redis's answer
        """Ask Redis, unless it has just failed: then `WindowUnavailable` at once."""
        if self._breaker.is_open:
            raise WindowUnavailable("Redis did not answer lately; not asked")
        try:
            answer = question()
        except (redis.RedisError, OSError) as error:
            self._breaker.failed()
            redis_url.leave_replica(self._client, error)
            raise WindowUnavailable(f"Redis does not answer: {type(error).__name__}") from None
        self._breaker.succeeded()
        return answer

    def forget(self) -> int:
        """Delete every entry of every place and say how many; for restores that keep the timeline."""
        cursor, count = 0, 0
        while True:
            cursor, keys = self._client.scan(cursor, match="hookonce:*:{*", count=PAGE)
            count += int(self._client.unlink(*keys)) if keys else 0
            if not cursor:
                return count


def _key(place: str, entry: Entry) -> str:
    event_id = entry.event_id
    if len(event_id) > LONGEST_ID or not event_id.isascii():
        event_id = "sha256:" + hashlib.sha256(event_id.encode()).hexdigest()
    return f"hookonce:{place}:{{{entry.source}:{event_id}}}"


def _accepted(fingerprint: bytes) -> bytes:
    return b"accepted:" + fingerprint.hex().encode()


def _ms(span: timedelta) -> int:
    return int(span.total_seconds() * 1000)
