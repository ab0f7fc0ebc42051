"""The dedup window: Redis remembers the ids of recent events, so that a fast retry costs no insert.

Redis keys used here:

    hookonce:<place>:{<source>:<event id>}
        "claimed"                 a receiver is storing it (60 s)
        "accepted:<fingerprint>"  the ledger of <place> holds it (for as long as the source's window says)

`<place>` names database and timeline (`connections.database_identity`), so what was written for a primary that has
since been replaced is never believed. Only "accepted" with the same fingerprint means duplicate; no
answer, "claimed" and everything else mean: ask the ledger.

A batch is one command: a script, because packing and parsing a command per event costs us ten times what
it costs Redis.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import redis

from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, asking, disconnect_if_replica

CLAIM_TTL = timedelta(seconds=60)
MAX_ID_LENGTH = 200
SCAN_PAGE_SIZE = 1000

_CLAIM = """
-- KEYS: entries. ARGV: how long a claim holds (ms). What was there before, for each; nothing if it is ours now.
local found = {}
for n, key in ipairs(KEYS) do found[n] = redis.call('SET', key, 'claimed', 'NX', 'GET', 'PX', ARGV[1]) end
return found
"""
_SETTLE = """
-- KEYS: RQ's queue, then entries. ARGV: value and time to live (ms) of each entry. How many notifications are pending.
for n = 2, #KEYS do redis.call('SET', KEYS[n], ARGV[2 * n - 3], 'PX', ARGV[2 * n - 2]) end
return redis.call('LLEN', KEYS[1])
"""


class WindowUnavailable(RedisUnavailable):
    """The window did not answer, or was not asked since it just failed."""


class WindowEntry(NamedTuple):
    """One event with one body, as the window knows it."""

    source: str
    event_id: str
    fingerprint: bytes


class DedupWindow:
    """The window on one Redis, behind a circuit breaker."""

    def __init__(
        self,
        client: redis.Redis,
        breaker: CircuitBreaker,
        on_error: Callable[[str], None] = lambda _phase: None,
    ) -> None:
        """Keep the window at `client`; `on_error` is told in which phase Redis failed: `claim` or `settle`."""
        self._client = client
        self._breaker = breaker
        self._on_error = on_error
        self._claim = client.register_script(_CLAIM)
        self._settle = client.register_script(_SETTLE)

    def claim(self, database_identity: str, entries: Collection[WindowEntry]) -> list[bool]:
        """Claim every entry in one round trip; return which are known to be in the ledger with this body.

        Raises `WindowUnavailable`; a claim may then have been set all the same, which harms nobody.
        """
        keys = [_key(database_identity, entry) for entry in entries]
        found = self._ask("claim", lambda: self._claim(keys, [_ms(CLAIM_TTL)]))
        return [answer == _accepted(entry.fingerprint) for entry, answer in zip(entries, found, strict=True)]

    def settle(
        self, database_identity: str | None, entries: Mapping[WindowEntry, timedelta], queue: str
    ) -> int:
        """Remember these entries as stored; return how many notifications are pending in RQ's `queue`. One round trip.

        Call after COMMIT, with the fingerprint of the row and how long to remember it. Where the place is unknown
        nothing is remembered. Raises `WindowUnavailable`.
        """
        keys: list[str] = [queue]
        values: list[bytes | int] = []
        if database_identity is not None:
            for entry, ttl in entries.items():
                keys.append(_key(database_identity, entry))
                values += [_accepted(entry.fingerprint), _ms(ttl)]
        return int(self._ask("settle", lambda: self._settle(keys, values)))

    def _ask(self, phase: str, question: Callable[[], Any]) -> Any:  # noqa: ANN401  Redis's answer
        """Return Redis's answer, unless it has just failed: then raise `WindowUnavailable` at once."""
        if self._breaker.is_open:
            raise WindowUnavailable("Redis did not answer lately; not asked")
        try:
            with asking():
                answer = question()
        except RedisUnavailable as error:
            self._breaker.failed()
            self._on_error(phase)
            disconnect_if_replica(self._client, error.__cause__)
            raise WindowUnavailable(f"Redis does not answer: {error}") from None
        self._breaker.succeeded()
        return answer

    def forget(self) -> int:
        """Delete every entry of every place; return how many. For restores that keep the timeline.

        Raises `RedisUnavailable`.
        """
        cursor, count = 0, 0
        with asking():
            while True:
                cursor, keys = self._client.scan(cursor, match="hookonce:*:{*", count=SCAN_PAGE_SIZE)
                count += int(self._client.unlink(*keys)) if keys else 0
                if not cursor:
                    return count


def _key(database_identity: str, entry: WindowEntry) -> str:
    event_id = entry.event_id
    if len(event_id) > MAX_ID_LENGTH or not event_id.isascii():
        event_id = "sha256:" + hashlib.sha256(event_id.encode()).hexdigest()
    return f"hookonce:{database_identity}:{{{entry.source}:{event_id}}}"


def _accepted(fingerprint: bytes) -> bytes:
    return b"accepted:" + fingerprint.hex().encode()


def _ms(span: timedelta) -> int:
    return int(span.total_seconds() * 1000)
