"""Records in Redis or Valkey: fast, and forgotten when Redis forgets. So never for what moves money.

Redis keys used here:

    hookonce:operation:<sha256 of scope and key>
        a hash: fingerprint, state, owner, attempt, uncertain, lease_until and expires_at (ms of the server's
        clock), and of what has ended status, headers, body. It lives as long as the record is kept.

What is lost: by a crash, what was confirmed since the last fsync (a second with `appendfsync everysec`, all since the
last snapshot without AOF); by a failover, what the replica had not yet; by eviction, any record. A record that was
lost is a key that was never seen: its operation is done again.

**Redis is believed here**, unlike everywhere else: a record is the answer that a client gets again. A program that can
write to this Redis can have an operation done twice, keep it from being done and, unless answers are sealed
(`receiver.idempotency.sealed`), answer in its place. A record that can't be ours (of another kind, or beyond what is
ever stored) is no answer: `StoreUnavailable`.

Each step is one script, and its clock is the server's.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar
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
from hookonce.receiver.redis.answers import items, whole_number
from hookonce.receiver.redis.client import (
    Client,
    RedisUnavailable,
    Script,
    asking,
    connect,
    disconnect_if_replica,
)

_Read = TypeVar("_Read")

MAX_RESULT = 1024**2
_ANSWER_SIZE = 8 * MAX_RESULT
"""Bytes of an answer of Redis: a record, whose headers are longer in JSON."""
_STATUS = re.compile(rb"[1-5][0-9]{2}")
_HEADER = re.compile(r"[^\r\n\0]*")
_MAX_ATTEMPT = 2**31 - 1
_MAX_SPAN = 366 * 86_400_000
"""Milliseconds that a lease or a record may last, as far as they are told."""

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
        scripts = (Script(client, text) for text in (_CLAIM, _COMPLETE, _RELEASE, _FIND))
        self._claim, self._complete, self._release, self._find = scripts

    @classmethod
    def at(cls, url: str) -> "RedisStore":
        """Return the store in the Redis at a URL, asked with short timeouts and no retries of the client's own."""
        return cls(connect(url, _ANSWER_SIZE))

    def claim(self, wanted: Claim) -> Claim | Record | None:
        """Claim a key; see `Store`."""
        values = [
            wanted.fingerprint,
            str(wanted.owner),
            _ms(wanted.terms.lease),
            _ms(wanted.terms.retention),
        ]
        return self._ask(self._claim, wanted.key, values, lambda answer: _claimed(wanted, answer))

    def complete(self, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim; see `Store`."""
        fields: list[Any] = []
        if result is not None:
            fields += ["status", result.status, "headers", json.dumps(dict(result.headers))]
            fields += ["body", result.body] if result.is_kept else []
        values = [str(claim.owner), str(state), _ms(claim.terms.retention), *fields]
        if not self._ask(self._complete, claim.key, values, lambda answer: whole_number(answer, 1)):
            raise LeaseLost(f"the claim on {claim.key.digest[:12]} was taken over or has expired")

    def release(self, claim: Claim) -> None:
        """Forget a claim; see `Store`."""
        self._ask(self._release, claim.key, [str(claim.owner)], lambda _: None)

    def find(self, key: Key) -> Record | None:
        """Return the record; see `Store`."""
        return self._ask(self._find, key, [], lambda answer: _record(*items(answer, 2)))

    def _ask(self, script: Script, key: Key, values: Sequence[Any], read: Callable[[object], _Read]) -> _Read:
        """Run a script and read its answer; what can't be read is as if Redis had not answered."""
        try:
            with asking():
                return read(script([self._prefix + key.digest], values))
        except RedisUnavailable as error:
            disconnect_if_replica(self._client, error.__cause__)
            raise StoreUnavailable(f"Redis does not answer, or not in time: {error}") from error


def _claimed(wanted: Claim, answer: Any) -> Claim | Record | None:  # noqa: ANN401  Redis's
    """Read what came of a claim. Raises whatever an answer that is not ours leads to."""
    is_mine, first, second = items(answer, 3)
    if not whole_number(is_mine, 1):
        return _record(first, second)
    attempt, uncertain = max(1, whole_number(first, _MAX_ATTEMPT)), bool(whole_number(second, 1))
    return Claim(wanted.key, wanted.fingerprint, wanted.owner, wanted.terms, attempt, uncertain)


def _record(now: Any, flat: Any) -> Record | None:  # noqa: ANN401  Redis's
    """Read a record. Raises whatever one that is not ours leads to."""
    if not flat:
        return None
    found = dict(zip(flat[::2], flat[1::2], strict=True))
    return Record(
        found[b"fingerprint"],
        State(found[b"state"].decode()),
        UUID(found[b"owner"].decode()),
        whole_number(int(found[b"attempt"]), _MAX_ATTEMPT),
        found[b"uncertain"] == b"1",
        _span(int(found[b"lease_until"]) - now),
        _span(int(found[b"expires_at"]) - now),
        _result(found) if b"status" in found else None,
    )


def _result(found: Mapping[bytes, bytes]) -> Result:
    """Read the answer that a record keeps. Raises: ValueError for one that no client of ours was ever given."""
    body, headers = found.get(b"body"), json.loads(found[b"headers"])
    size = len(body or b"") + sum(len(name) + len(value) for name, value in headers.items())
    is_ours = _STATUS.fullmatch(found[b"status"]) and size <= _ANSWER_SIZE
    if not is_ours or not all(_HEADER.fullmatch(part) for pair in headers.items() for part in pair):
        raise ValueError("an answer that was never stored")
    return Result(int(found[b"status"]), headers, body or b"", is_kept=body is not None)


def _span(ms: int) -> timedelta:
    return timedelta(milliseconds=min(max(ms, -_MAX_SPAN), _MAX_SPAN))


def _ms(span: timedelta) -> int:
    return int(span / timedelta(milliseconds=1))
