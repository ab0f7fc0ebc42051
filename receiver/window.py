"""The dedup window: Redis remembers the ids of recent events, so that a fast retry costs no insert.

Redis keys used here:

    hookonce:<place>:{<source>:<event id>}
        "claimed"                 a receiver is storing it (60 s)
        "accepted:<fingerprint>"  the ledger of <place> holds it (for as long as the source's window says)

`<place>` names database and timeline (`database.where_am_i`), so what was written for a primary that has
since been replaced is never believed. Only "accepted" with the same fingerprint means duplicate; no
answer, "claimed" and everything else mean: ask the ledger.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import redis
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.retry import Retry

from receiver.breaker import Breaker

TIMEOUT = timedelta(milliseconds=250)
CLAIM = timedelta(seconds=60)
LONGEST_ID = 200

_CLAIMED = "claimed"
_ACCEPTED = "accepted:"


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
    return redis.Redis.from_url(
        url,
        socket_timeout=span,
        socket_connect_timeout=span,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=0,
    )


class Window:
    """The window on one Redis, behind a circuit breaker that it shares with the bell."""

    def __init__(self, client: redis.Redis, breaker: Breaker) -> None:
        self._client = client
        self._breaker = breaker

    def claim(self, place: str, entries: Sequence[Entry]) -> list[bool]:
        """Claim every entry in one round trip; tell which are known to be in the ledger with this body.

        Raises `WindowUnavailable`; a claim may then have been set all the same, which harms nobody.
        """
        with self.pipeline() as pipe:
            for entry in entries:
                pipe.set(_key(place, entry), _CLAIMED, nx=True, get=True, px=CLAIM)
            answers = self.execute(pipe)
        return [
            answer == _accepted(entry.fingerprint) for entry, answer in zip(entries, answers, strict=True)
        ]

    def settle(self, pipe: Pipeline, place: str, entries: Sequence[Entry]) -> None:
        """Queue what remembers these entries as stored; call after COMMIT, with the fingerprint of the row."""
        for entry in entries:
            pipe.set(_key(place, entry), _accepted(entry.fingerprint), px=entry.ttl)

    def pipeline(self) -> Pipeline:
        """Open a pipeline for `settle` and whatever shares its round trip."""
        return self._client.pipeline(transaction=False)

    def execute(self, pipe: Pipeline) -> list[bytes | int | None]:
        """Send a pipeline. Raises `WindowUnavailable` at once while the breaker is open."""
        if self._breaker.is_open:
            raise WindowUnavailable("Redis did not answer lately; not asked")
        try:
            answers = pipe.execute()
        except (redis.RedisError, OSError) as error:
            self._breaker.failed()
            raise WindowUnavailable(f"Redis does not answer: {type(error).__name__}") from None
        self._breaker.succeeded()
        return list(answers)

    def forget(self) -> int:
        """Delete every entry of every place and say how many; for restores that keep the timeline."""
        count = 0
        for key in self._client.scan_iter(match="hookonce:*:{*", count=1000):
            count += int(self._client.delete(key))
        return count


def _key(place: str, entry: Entry) -> str:
    event_id = entry.event_id
    if len(event_id) > LONGEST_ID or not event_id.isascii():
        event_id = "sha256:" + hashlib.sha256(event_id.encode()).hexdigest()
    return f"hookonce:{place}:{{{entry.source}:{event_id}}}"


def _accepted(fingerprint: bytes) -> bytes:
    return (_ACCEPTED + fingerprint.hex()).encode()
