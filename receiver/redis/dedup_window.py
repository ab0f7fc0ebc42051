"""The dedup window: Redis remembers the ids of recent events, so that a fast retry costs no insert.

Redis keys used here:

    hookonce:<place>:{<source>:<event id>}
        "claimed"                a receiver is storing it (60 s)
        "stored:<until>:<mark>"  the ledger of <place> holds it (for as long as the source's window says, which is over
                                 at <until>: ms since 1970, in hexadecimal)

`<place>` names database and timeline (`connections.place_of`), so what was written for a primary that has
since been replaced is never believed.

Redis is not believed either: whoever can write to it can write anything. A mark is made with a key that the ledger
holds, over the place, source, event id, fingerprint and `<until>`; so nobody without that key can say that an event is
stored, nor move the mark of one event to another, nor keep it for longer. No mark, or none of ours (one of
before `hookonce events forget-window`): ask the ledger.

A batch is one command: a script, because packing and parsing a command per event costs us ten times what
it costs Redis. It settles what the batch before has stored, too. On a cluster each key is asked for by itself, and
what a node that is away would know is asked of the ledger.
"""

import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from hmac import compare_digest
from itertools import islice
from typing import Any, NamedTuple

import redis

from hookonce.receiver.processes.waits import IN_THREAD, Waits
from hookonce.receiver.redis.answers import MAX_COUNT, lines, number_in, whole_number
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, Script, asking, disconnect_if_replica
from hookonce.receiver.redis.cluster import Cluster, Command

CLAIM_TTL = timedelta(seconds=60)
MAX_ID_LENGTH = 200
SCAN_PAGE_SIZE = 1000

_STORED = b"stored:"
_MARK_BYTES = 16
_LONGEST = 64
"""Bytes of a value of ours; the longest has some fifty."""
_PURPOSE = b"hookonce window"

_EXCHANGE = """
-- KEYS: RQ's queue and the entries to remember, or neither; then the entries to claim. ARGV: how many keys come before
-- those to claim; how long a claim holds (ms); the longest value; then value and time to live (ms) of each entry that
-- is to be remembered. Answers a line for each: how many notifications are pending, if there is a queue; then what each
-- entry to claim held before, an empty line if it is ours now, and for what is none of ours, being longer, of more
-- lines or of another type.
local found, first = {}, tonumber(ARGV[1])
for n = 2, first do redis.call('SET', KEYS[n], ARGV[2 * n], 'PX', ARGV[2 * n + 1]) end
if first > 0 then found[1] = string.format('%d', redis.call('LLEN', KEYS[1])) end
for n = first + 1, #KEYS do
    local was = redis.pcall('SET', KEYS[n], 'claimed', 'NX', 'GET', 'PX', ARGV[2])
    if type(was) == 'table' and not string.find(was.err, 'WRONGTYPE') then return was end
    local fits = type(was) == 'string' and #was <= tonumber(ARGV[3]) and not string.find(was, '\\n', 1, true)
    found[#found + 1] = fits and was or ''
end
return table.concat(found, '\\n')
"""


class WindowUnavailable(RedisUnavailable):
    """The window did not answer, or was not asked since it just failed."""


class WindowEntry(NamedTuple):
    """One event with one body, as the window knows it."""

    source: str
    event_id: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """The ledger that a window stands before: its name, and the key that its marks are made with."""

    name: str
    key: bytes = field(repr=False)
    _hash: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        begun = hashlib.blake2b(digest_size=_MARK_BYTES, key=self.key, person=_PURPOSE)
        begun.update(f"{len(self.name)} {self.name}".encode())
        object.__setattr__(self, "_hash", begun)

    def mark(self, entry: WindowEntry, until: bytes) -> bytes:
        """Return the mark of one entry, 32 hexadecimal digits; it takes about 1 µs.

        No part can pretend to be another: all fingerprints are equally long.
        """
        source, event_id, fingerprint = entry
        made = self._hash.copy()
        made.update(f"{len(source)} {len(event_id)} {source}{event_id}".encode() + fingerprint + until)
        return made.hexdigest().encode()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Remembered:
    """Stored events: with the fingerprint of each row, and for how long it is to be remembered.

    queue: RQ's, whose length says whether a worker was notified already
    place: where it is stored; where that is unknown nothing is remembered
    """

    queue: str
    place: WindowPlace | None
    entries: Mapping[WindowEntry, timedelta]


class DedupWindow:
    """The window on one Redis, behind a circuit breaker."""

    def __init__(
        self,
        client: redis.Redis,
        breaker: CircuitBreaker,
        on_error: Callable[[str], None] = lambda _phase: None,
        clock: Callable[[], float] = time.time,
        pending: Callable[[], int] | None = None,
    ) -> None:
        """Keep the window at `client`; `on_error` is told in which phase Redis failed: `claim` or `settle`.

        `pending` asks how many notifications are pending where RQ's queue is on another Redis.
        """
        self._client = client
        self._pending = pending
        self._breaker = breaker
        self._on_error = on_error
        self._clock = clock
        self._exchange = Script(client, _EXCHANGE)

    async def claim(
        self, place: WindowPlace, entries: Collection[WindowEntry], waits: Waits = IN_THREAD
    ) -> list[bool]:
        """Claim every entry in one round trip; return which are known to be in the ledger with this body.

        Raises `WindowUnavailable`; a claim may then have been set all the same, which harms nobody.
        """
        return (await self.exchange(place, entries, None, waits))[0]

    async def settle(self, stored: Remembered, waits: Waits = IN_THREAD) -> int:
        """Remember what is stored; return how many notifications are pending in RQ's queue. One round trip.

        Call after COMMIT. Raises `WindowUnavailable`.
        """
        return (await self.exchange(None, (), stored, waits))[1]

    async def exchange(
        self,
        place: WindowPlace | None,
        entries: Collection[WindowEntry],
        stored: Remembered | None = None,
        waits: Waits = IN_THREAD,
    ) -> tuple[list[bool], int]:
        """Settle what an earlier batch has stored and claim the entries of this one, in one round trip.

        Returns what `claim` does and what `settle` does. Raises `WindowUnavailable`.
        """
        keys: list[str] = []
        values: list[bytes | int] = []
        if stored is not None:
            keys.append(stored.queue)
            values = self._remember(stored, keys)
        first = len(keys)
        if place is not None:
            keys += [_key(place.name, entry) for entry in entries]
        values[:0] = (first, _CLAIM_MS, _LONGEST)
        if self._breaker.is_open:
            raise WindowUnavailable("Redis did not answer lately; not asked")
        try:
            with asking():
                if isinstance(self._client, Cluster):
                    found = await waits.ask_server(self._by_key, self._client, keys, values)
                else:
                    found = lines(await self._exchange.ask(keys, values, waits), bool(first) + len(entries))
                pending = number_in(found[0], MAX_COUNT) if first else 0
        except RedisUnavailable as error:
            self._breaker.failed()
            self._on_error("claim" if entries else "settle")
            disconnect_if_replica(self._client, error.__cause__)
            raise WindowUnavailable(f"Redis does not answer: {error}") from None
        self._breaker.succeeded()
        if first and self._pending is not None:
            with suppress(RedisUnavailable):  # then one is notified that may have been, and says so
                pending = await waits.ask_server(self._pending)
        if place is None:
            return [], pending
        return [
            answer != b"" and self._is_marked(place, entry, answer)
            for entry, answer in zip(entries, found[bool(first) :], strict=True)
        ], pending

    @staticmethod
    def _by_key(cluster: Cluster, keys: Sequence[str], values: Sequence[bytes | int]) -> Sequence[bytes]:
        """Answer as `_EXCHANGE` does, having asked for each key by itself."""
        first = int(values[0])
        kept = zip(keys[1:first], values[3::2], values[4::2], strict=False)
        commands: list[Command] = [(b"SET", key, value, "PX", span) for key, value, span in kept]
        commands += [(b"SET", key, "claimed", "NX", "GET", "PX", _CLAIM_MS) for key in keys[first:]]
        known = cluster.ask(commands)[max(first - 1, 0) :]
        found = [each if isinstance(each, bytes) and len(each) <= _LONGEST else b"" for each in known]
        return [b"0", *found] if first else found

    def _remember(self, stored: Remembered, keys: list[str]) -> list[bytes | int]:
        """Add the keys of what is stored; return their values and times to live."""
        place = stored.place
        if place is None:
            return []
        now = self._clock()
        spans = {
            ttl: (b"%x" % int((now + ttl.total_seconds()) * 1000), _ms(ttl))
            for ttl in set(stored.entries.values())
        }
        values: list[bytes | int] = []
        for entry, ttl in stored.entries.items():
            until, span = spans[ttl]
            keys.append(_key(place.name, entry))
            values += (b"%b%b:%b" % (_STORED, until, place.mark(entry, until)), span)
        return values

    def _is_marked(self, place: WindowPlace, entry: WindowEntry, answer: bytes) -> bool:
        """Whether an answer says, by our own word, that the ledger holds this event with this body."""
        if not answer.startswith(_STORED) or len(answer) > _LONGEST:
            return False
        until, _, mark = answer[len(_STORED) :].partition(b":")
        if not compare_digest(mark, place.mark(entry, until)):
            return False
        return self._clock() * 1000 < int(until, 16)  # our own number: the mark is over it

    def forget(self) -> int:
        """Delete every entry of every place; return how many. For restores that keep the timeline.

        A program that wrote them down can put them back: what makes them untrue is another key
        (`connections.renew_window_key`). Raises `RedisUnavailable`.
        """
        count = 0
        with asking():
            found = self._client.scan_iter(match="hookonce:*:{*", count=SCAN_PAGE_SIZE)
            while keys := list(islice(found, SCAN_PAGE_SIZE)):
                count += whole_number(self._client.unlink(*keys), len(keys))
        return count


def _key(place: str, entry: WindowEntry) -> str:
    event_id = entry.event_id
    if len(event_id) > MAX_ID_LENGTH or not event_id.isascii():
        event_id = "sha256:" + hashlib.sha256(event_id.encode()).hexdigest()
    return f"hookonce:{place}:{{{entry.source}:{event_id}}}"


def _ms(span: timedelta) -> int:
    return int(span.total_seconds() * 1000)


_CLAIM_MS = _ms(CLAIM_TTL)
