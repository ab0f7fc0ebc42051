"""Which ids were seen lately, where a few that are wrongly taken for known do no harm: clicks, impressions, telemetry.

    clicks = hookonce.approximate("clicks", keep="1h", most=1_000_000, one_in=1000, moves_money=False)

    @on_batch("tracker", "click", most=500)
    def count(events, tx):
        new = clicks.new(event.data["id"] for event in events)
        ...
        events[0].after_commit(lambda: clicks.mark(new))

Redis keys used here; `<shape>` is what was declared, so that another declaration begins anew:

    hookonce:approximate                          the declarations that were used lately
    hookonce:{approximate:<name>:<shape>}         a hash of figures: `Figures`
    hookonce:{approximate:<name>:<shape>}:<n>     what was marked in the n-th span of `keep` since 1970: a Bloom filter,
                                                  or a set of digests where it is exact

Two spans are asked, this one and the one before; so an id is known for `keep` at least and twice that at most.
"""

import asyncio
import functools
import hashlib
import logging
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import Any, Final, NamedTuple

from hookonce.receiver.config.servers import window_url
from hookonce.receiver.durations import format_duration, parse_duration
from hookonce.receiver.redis.answers import MAX_COUNT, items, plain
from hookonce.receiver.redis.client import Client, RedisUnavailable, Script, asking, connect

log = logging.getLogger(__name__)

DECLARED: Final = "hookonce:approximate"
SPANS: Final = 2
"""Spans that are asked, each of which may hold `most`."""
FULL: Final = 0.8
"""The share of `most` from which on an alert is raised."""
MAX_AT_ONCE: Final = 1000
"""Ids that one script takes: Redis does nothing else meanwhile."""
_BYTES_OF_DIGEST: Final = 16
_BYTES_IN_SET: Final = 72
"""The bytes that Redis needs for each digest in a set; Valkey 8 needs 40."""
_BYTES_BESIDE: Final = 400_000
"""The bytes of names, figures, the script, and a connection."""
_SHARE_OF_HASHES: Final = 0.65
"""The share of the smallest filter's hashes that is used: a third less work for a tenth more memory."""
_MAX_BITS: Final = 2**32 - 1
"""The bits that one string of Redis can have."""
_LONGEST_DECLARATION: Final = 200
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LONGEST: Final = timedelta(days=30)

_ASK = """
-- KEYS: the figures. ARGV: `new` or `mark`; ms of a span; bits, and hashes, of a filter, 0 for a set; digests, one
-- after the other; ids of this process that were not answered before.
-- Answers for each id 1 where it is new (`mark`: was), else 0; and since when there are figures.
local mode, span, bits, hashes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = math.floor((time[1] * 1000 + time[2] / 1000) / span)
local figures = KEYS[1]
local here, before = figures .. ':' .. now, figures .. ':' .. (now - 1)
local since = redis.call('HGET', figures, 'since')
if not since then
    since = time[1] .. '.' .. time[2]
    redis.call('HSET', figures, 'since', since, 'span', now, 'here', 0, 'before', 0)
end
local held = tonumber(redis.call('HGET', figures, 'span'))
if held ~= now then
    local kept = held == now - 1 and redis.call('HGET', figures, 'here') or 0
    redis.call('HSET', figures, 'span', now, 'here', 0, 'before', kept)
end
redis.call('PEXPIRE', figures, 8 * span)
if tonumber(ARGV[6]) > 0 then redis.call('HINCRBY', figures, 'unanswered', ARGV[6]) end

local function places(digest, found)
    local first, step = struct.unpack('<I4I4', digest)
    for n = 1, hashes do
        found[n] = (first + (n - 1) * step + ((n - 1) ^ 3 - n + 1) / 6) % bits
    end
    return found
end
local function has(key, digest, at)
    if bits == 0 then return redis.call('SISMEMBER', key, digest) == 1 end
    for n = 1, hashes do
        if redis.call('GETBIT', key, at[n]) == 0 then return false end
    end
    return true
end

local answers, new, at = {}, 0, {}
local is_begun = redis.call('EXISTS', here) == 1
if mode == 'mark' and not is_begun then -- a string that grows bit by bit is given twice the room
    if bits > 0 then redis.call('SETBIT', here, bits, 1) else redis.call('SADD', here, '') end
    redis.call('PEXPIRE', here, 2 * span)
end
local asks_before = redis.call('EXISTS', before) == 1
for n = 1, #ARGV[5] / 16 do
    local digest = string.sub(ARGV[5], 16 * n - 15, 16 * n)
    if bits > 0 then places(digest, at) end
    local is_new = true
    if mode == 'new' then
        is_new = not (is_begun and has(here, digest, at)) and not (asks_before and has(before, digest, at))
    elseif bits == 0 then
        is_new = redis.call('SADD', here, digest) == 1
    else
        is_new = false
        for m = 1, hashes do
            if redis.call('SETBIT', here, at[m], 1) == 0 then is_new = true end
        end
    end
    if is_new then new = new + 1 end
    answers[n] = is_new and '1' or '0'
end
if mode == 'mark' then
    redis.call('HINCRBY', figures, 'here', new)
elseif bits > 0 then
    local wrong = 0
    for _, count in ipairs(redis.call('HMGET', figures, 'here', 'before')) do
        wrong = wrong + (1 - math.exp(-hashes * count / bits)) ^ hashes
    end
    redis.call('HINCRBYFLOAT', figures, 'wrong', string.format('%.9f', new * wrong / math.max(1 - wrong, 0.01)))
end
return {table.concat(answers), since}
"""

_in_command: ContextVar[bool] = ContextVar("in_command", default=False)
"""Whether a command is being done, which nothing approximate may decide."""
_server = ""


def use(redis_url: str) -> None:
    """Have everything approximate of this process on this Redis."""
    global _server  # noqa: PLW0603  one for each process, as its configuration
    _server = redis_url


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command's function, in which nothing approximate can be asked."""
    if asyncio.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*given: object) -> object:
            with _doing_a_command():
                return await function(*given)

        return awaited

    return _doing_a_command()(function)


@contextmanager
def _doing_a_command() -> Iterator[None]:
    token = _in_command.set(True)
    try:
        yield
    finally:
        _in_command.reset(token)


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of an approximate set, by what was declared of it: `bits` and `hashes` of each filter."""

    keep: timedelta
    most: int
    one_in: int
    exact: bool = False

    def __post_init__(self) -> None:
        if not timedelta(seconds=1) <= self.keep <= _LONGEST:
            raise ValueError(f"keep is {format_duration(self.keep)}; expected from 1s to 30d")
        if self.most < 1 or self.one_in < 1:
            raise ValueError(f"most={self.most}, one_in={self.one_in}; expected whole numbers from 1 on")
        if self.bits > _MAX_BITS:
            raise ValueError(
                f"{self.most} ids at one in {self.one_in} need {self.bits:,} bits a filter; Redis keeps {_MAX_BITS:,}: "
                "lower most, or shorten keep"
            )

    @property
    def hashes(self) -> int:
        """Return how many bits stand for an id."""
        return max(1, round(_SHARE_OF_HASHES * math.log2(SPANS * self.one_in)))

    @property
    def bits(self) -> int:
        """Return how many bits a filter has; 0 where sets of digests are kept.

        So many that all live filters together, each of them full, are wrong once in `one_in`: k hashes of n ids leave
        a share of (1 - exp(-k n / bits))^k, which is to be 1 / (SPANS * one_in).
        """
        if self.exact:
            return 0
        share = (SPANS * self.one_in) ** (-1 / self.hashes)
        return math.ceil(-self.hashes * self.most / math.log(1 - share))

    @property
    def memory(self) -> int:
        """Return the bytes that Redis needs, at most."""
        of_span = _BYTES_IN_SET * self.most if self.exact else math.ceil(self.bits / 8)
        return SPANS * of_span + _BYTES_BESIDE

    def __str__(self) -> str:
        how = "exact" if self.exact else f"one-in-{self.one_in}"
        return f"{self.keep.total_seconds():.0f}s:{self.most}:{how}"


class Approximate:
    """A set of ids that were seen lately, which may take a new one for known; made by `approximate`."""

    def __init__(self, name: str, shape: Shape) -> None:
        self.name = name
        self.shape = shape
        self._key = _key(f"{name}:{shape}")
        self._lock = Lock()
        self._script: tuple[int, str, Script] | None = None
        self._since = b""
        self._unanswered = 0

    def new(self, ids: Iterable[str]) -> list[str]:
        """Return those ids that were not marked lately, each once, in order; all of them where Redis is away."""
        asked = list(dict.fromkeys(ids))
        return [each for each, is_new in zip(asked, self._ask("new", asked), strict=True) if is_new]

    def mark(self, ids: Iterable[str]) -> None:
        """Have ids be known for `keep`. Call it once what is done with them is committed (`event.after_commit`)."""
        self._ask("mark", list(dict.fromkeys(ids)))

    def _ask(self, mode: str, ids: Sequence[str]) -> list[bool]:
        if _in_command.get():
            raise ValueError(
                f"approximate '{self.name}' is asked by a command, which is done once and exactly; the ledger knows "
                "whether its key came before: leave it out"
            )
        found: list[bool] = []
        digests = [self._digest(each) for each in ids]
        for begin in range(0, len(ids), MAX_AT_ONCE):
            some = digests[begin : begin + MAX_AT_ONCE]
            try:
                with asking():
                    found += self._answers(mode, some)
            except RedisUnavailable as error:
                self._unanswered += len(some)
                log.warning("approximate '%s': Redis is away (%s); every id is new", self.name, error)
                found += [True] * len(some)
        return found

    def _digest(self, text: str) -> bytes:
        if not isinstance(text, str):
            raise TypeError(
                f"approximate '{self.name}' is given {type(text).__name__} for an id; expected str"
            )
        whole = text.encode(errors="surrogatepass")  # JSON may hold half a surrogate
        return hashlib.blake2b(whole, digest_size=_BYTES_OF_DIGEST).digest()

    def _answers(self, mode: str, digests: Sequence[bytes]) -> list[bool]:
        unanswered, shape = self._unanswered, self.shape
        span = shape.keep // timedelta(milliseconds=1)
        script = self._connected()
        values = [mode, span, shape.bits, shape.hashes, b"".join(digests), unanswered]
        marks, since = items(script([self._key], values), 2)
        if not isinstance(marks, bytes) or len(marks) != len(digests) or not isinstance(since, bytes):
            raise RedisUnavailable("an answer that is none of a script of ours")
        self._unanswered -= unanswered
        if self._since and since != self._since:
            log.warning("approximate '%s': Redis has forgotten what was marked", self.name)
        if since != self._since:
            script.client.sadd(DECLARED, f"{self.name}:{shape}")
        self._since = since
        return [mark == ord("1") for mark in marks]

    def _connected(self) -> Script:
        """Return the script on a connection of this process, and of the server that it uses."""
        url = _server or window_url()
        if not url:
            raise RedisUnavailable("REDIS_URL is not set")
        with self._lock:
            if self._script is None or self._script[:2] != (os.getpid(), url):
                self._script = (os.getpid(), url, Script(connect(url), _ASK))
            return self._script[2]


_known: dict[str, Approximate] = {}


def approximate(  # noqa: PLR0913  all but one by keyword
    name: str,
    *,
    keep: str | timedelta,
    most: int,
    one_in: int = 1000,
    exact: bool = False,
    moves_money: bool = False,
) -> Approximate:
    """Declare a set of ids that are known for `keep`, of which `most` come in that time.

    A new id is taken for known once in `one_in` when it is full; never where `exact` (which takes 72 bytes an id).
    Raises: ValueError for what can't be, and where it `moves_money`: a payment that is taken for known is lost.
    """
    if moves_money:
        raise ValueError(
            f"approximate '{name}' moves money: once in {one_in} a payment would be taken for known and lost; the "
            "ledger keeps every event once by itself, and steps do a call once (event.step)"
        )
    if not _NAME.fullmatch(name):
        raise ValueError(f"approximate '{name}': expected a name of lower-case letters, digits, - and _")
    made = Approximate(name, Shape(parse_duration(keep), most, one_in, exact))
    if (known := _known.get(name)) is not None and known.shape != made.shape:
        raise ValueError(
            f"approximate '{name}' is declared twice: {known.shape} and {made.shape}; use one name for each"
        )
    return _known.setdefault(name, made)


def _key(declaration: str) -> str:
    return f"hookonce:{{approximate:{declaration}}}"


class Figures(NamedTuple):
    """The figures of one declaration, as Redis has them.

    ids: marked in the fuller of its two spans, of `most`
    wrong: new ids that were taken for known, as estimated
    unanswered: ids that were taken for new since Redis was away
    """

    name: str
    keep: str
    most: int
    how: str
    ids: int
    wrong: float
    unanswered: int


def figures(client: Client) -> list[Figures]:
    """Return the figures of all that was used lately; what is none of ours is dropped. Raises `RedisUnavailable`."""
    found = []
    with asking():
        for each in sorted(client.smembers(DECLARED)):
            try:
                declaration = each.decode() if isinstance(each, bytes) else each
                name, keep, most, how = plain(declaration, _LONGEST_DECLARATION).split(":")
                told = client.hgetall(_key(declaration))
                ids = max(_count(told, b"here"), _count(told, b"before"))
                wrong, unanswered = float(told.get(b"wrong", 0)), _count(told, b"unanswered")
                made = Figures(name, keep, int(most), how, ids, wrong, unanswered)
            except (ValueError, TypeError, OverflowError):
                client.srem(DECLARED, each)
                continue
            if told:
                found.append(made)
            else:
                client.srem(DECLARED, each)
    return found


def _count(told: Any, field: bytes) -> int:  # noqa: ANN401  a hash of Redis
    return min(max(int(told.get(field, 0)), 0), MAX_COUNT)
