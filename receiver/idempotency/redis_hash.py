"""Records in Redis or Valkey: fast, and forgotten when Redis forgets. So never for what moves money.

Redis keys used here:

    hookonce:operation:<sha256 of scope and key>
        a hash: fingerprint, state, owner, attempt, uncertain, lease_until and expires_at (ms of the server's
        clock), and of what has ended status, headers, body. It lives as long as the record is kept.

What is lost: by a crash, what was confirmed since the last fsync (a second with `appendfsync everysec`, all since the
last snapshot without AOF); by a failover, what the replica had not yet; by eviction, any record. A record that was
lost is a key that was never seen: its operation is done again.

Each step is one script, and its clock is the server's.
"""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from hookonce.receiver.idempotency.records import (
    Claim,
    Key,
    LeaseLost,
    Record,
    Result,
    State,
    StoreUnavailable,
)
from hookonce.receiver.redis.client import (
    Client,
    RedisUnavailable,
    asking,
    connect,
    disconnect_if_replica,
)

MAX_RESULT = 1024**2

_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local old = {}
local flat = redis.call('HGETALL', KEYS[1])
for n = 1, #flat, 2 do old[flat[n]] = flat[n + 1] end
"""
_CLAIM = (
    _NOW
    + """
-- KEYS: the record. ARGV: fingerprint, owner, lease (ms), retention (ms).
-- {1, attempt, uncertain} if it is claimed now; else {0, now, fields and values of what is there}.
local running = old.state == 'in_progress' and tonumber(old.lease_until) > now
local gone = not old.state or tonumber(old.expires_at) <= now
local mine = old.state == 'in_progress' and old.owner == ARGV[2]
local same = old.fingerprint == ARGV[1]
if not gone and not (same and (mine or old.state == 'failed_retryable'
                               or (old.state == 'in_progress' and not running))) then
  return {0, now, flat}
end
local attempt, uncertain = 1, '0'
if not gone then
  attempt = tonumber(old.attempt) + (mine and 0 or 1)
  uncertain = old.uncertain
  if old.state == 'in_progress' and not mine then uncertain = '1' end
end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'fingerprint', ARGV[1], 'state', 'in_progress', 'owner', ARGV[2], 'attempt', attempt,
           'uncertain', uncertain, 'lease_until', now + ARGV[3], 'expires_at', now + ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {1, attempt, tonumber(uncertain)}
"""
)
_COMPLETE = (
    _NOW
    + """
-- KEYS: the record. ARGV: owner, state, retention (ms), then fields and values of the result.
-- 1 if it is stored, now or by this owner before; 0 if the claim is not this owner's.
if old.owner ~= ARGV[1] then return 0 end
if old.state ~= 'in_progress' then return old.state == ARGV[2] and 1 or 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'expires_at', now + ARGV[3], unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
)
_RELEASE = """
-- KEYS: the record. ARGV: owner.
local found = redis.call('HMGET', KEYS[1], 'owner', 'state')
if found[1] == ARGV[1] and found[2] == 'in_progress' then redis.call('DEL', KEYS[1]) end
"""
_FIND = (
    _NOW
    + """
-- KEYS: the record.
return {now, flat}
"""
)


class RedisStore:
    """Records in one Redis, or wherever its Sentinels lead."""

    loses = "Redis forgets what it confirmed: after a crash, a failover or an eviction"
    max_result = MAX_RESULT

    def __init__(self, client: Client, prefix: str = "hookonce:operation:") -> None:
        self._client = client
        self._prefix = prefix
        scripts = (client.register_script(text) for text in (_CLAIM, _COMPLETE, _RELEASE, _FIND))
        self._claim, self._complete, self._release, self._find = scripts

    @classmethod
    def at(cls, url: str) -> "RedisStore":
        """Return the store in the Redis at a URL, asked with short timeouts and no retries of the client's own."""
        return cls(connect(url))

    def claim(self, wanted: Claim) -> Claim | Record | None:
        """Claim a key; see `Store`."""
        values = [
            wanted.fingerprint,
            str(wanted.owner),
            _ms(wanted.terms.lease),
            _ms(wanted.terms.retention),
        ]
        is_mine, *rest = self._ask(self._claim, wanted.key, values)
        if is_mine:
            attempt, uncertain = rest
            return Claim(wanted.key, wanted.fingerprint, wanted.owner, wanted.terms, attempt, bool(uncertain))
        return _record(*rest)

    def complete(self, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim; see `Store`."""
        fields: list[Any] = []
        if result is not None:
            fields += ["status", result.status, "headers", json.dumps(dict(result.headers))]
            fields += ["body", result.body] if result.is_kept else []
        values = [str(claim.owner), str(state), _ms(claim.terms.retention), *fields]
        if not self._ask(self._complete, claim.key, values):
            raise LeaseLost(f"the claim on {claim.key.digest[:12]} was taken over or has expired")

    def release(self, claim: Claim) -> None:
        """Forget a claim; see `Store`."""
        self._ask(self._release, claim.key, [str(claim.owner)])

    def find(self, key: Key) -> Record | None:
        """Return the record; see `Store`."""
        return _record(*self._ask(self._find, key, []))

    def _ask(self, script: Callable[..., Any], key: Key, values: Sequence[Any]) -> Any:  # noqa: ANN401  Redis's answer
        try:
            with asking():
                return script([self._prefix + key.digest], values)
        except RedisUnavailable as error:
            disconnect_if_replica(self._client, error.__cause__)
            raise StoreUnavailable(f"Redis does not answer, or not in time: {error}") from error


def _record(now: int, flat: Sequence[bytes]) -> Record | None:
    if not flat:
        return None
    found = dict(zip(flat[::2], flat[1::2], strict=True))
    result = None
    if b"status" in found:
        body = found.get(b"body")
        result = Result(
            int(found[b"status"]), json.loads(found[b"headers"]), body or b"", is_kept=body is not None
        )
    return Record(
        found[b"fingerprint"],
        State(found[b"state"].decode()),
        UUID(found[b"owner"].decode()),
        int(found[b"attempt"]),
        found[b"uncertain"] == b"1",
        timedelta(milliseconds=int(found[b"lease_until"]) - now),
        timedelta(milliseconds=int(found[b"expires_at"]) - now),
        result,
    )


def _ms(span: timedelta) -> int:
    return int(span / timedelta(milliseconds=1))
