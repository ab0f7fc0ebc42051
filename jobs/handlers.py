"""The registry behind `@on`: which of the user's functions take which events, and how often they may fail.

A handler is `handler(event, tx)` or `handler(event, session)`, plain or `async def`. It returns (done; what it
returned is stored with the run), raises `RetryLater` (again later, not counted) or `GiveUp` (dead), or raises anything
else (a failed attempt). Its name is the identity of its runs: renaming a function makes new runs for new events and
leaves old ones waiting; `name=` keeps them.
"""

import importlib
import random
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import get_close_matches
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from hookonce.jobs.error_summary import summarize
from hookonce.jobs.event import ReceivedEvent
from hookonce.jobs.handler_signature import Signature, signature_of, signature_of_long, uses_steps
from hookonce.receiver.ledger.handlers import Row
from hookonce.receiver.ledger.runs.batch_size import BatchSize
from hookonce.receiver.ledger.runs.run_limits import PER, Rate, RunLimit

Function = TypeVar("Function", bound=Callable[[ReceivedEvent, Any], object])
LongFunction = TypeVar("LongFunction", bound=Callable[[ReceivedEvent], object])

SLOW_AFTER = timedelta(milliseconds=100)
"""A handler that takes longer is kept from holding up others: its events are claimed one at a time."""
DEFAULT_BACKOFF = (timedelta(seconds=5), timedelta(hours=1))
MAX_TIMEOUT = timedelta(hours=1)
"""For one attempt; RQ's own limit (`receiver.redis.work_queue.JOB_TIMEOUT`) is beyond it and must never be reached."""

NO_TRANSACTION = "none"
"""`tx=` of a handler that opens short transactions of its own (`event.tx()`)."""
ISOLATION_LEVELS = ("read committed", "repeatable read", "serializable")

STEPS_NEED_A_NAME = (
    "handler '{handler}' uses event.step and has no name=; name it, as in @on(..., name=\"credit\"): the keys of its "
    "steps are made of that, and a function that is moved or renamed would do everything again"
)

_MAX_DELAY_SECONDS = 366 * 86400.0


Named = ReceivedEvent | Collection[ReceivedEvent] | None
"""Which events of a batch an error is about."""


class GiveUp(Exception):  # noqa: N818  what the handler does
    """Raised by a handler: no further attempt can help; the run is dead and waits for a person.

    In a batch `event` is the event, or the events, that this is said of; the others are handled again without them.
    """

    def __init__(self, *args: object, event: Named = None) -> None:
        super().__init__(*args)
        self.event = event


class RetryLater(Exception):  # noqa: N818  what the handler asks for
    """Raised by a handler: not now; try again after `delay` (seconds or a timedelta). Not a failed attempt.

    In a batch this is said of all its events, or of `event`: one, or several.
    """

    def __init__(self, delay: float | timedelta, *, event: Named = None) -> None:
        self.delay = pause(delay)
        self.event = event
        super().__init__(f"again in {self.delay.total_seconds():g} s")


def pause(wanted: float | timedelta) -> timedelta:
    """Return the pause that a handler asked for (seconds or a timedelta): none at least, a year at most.

    Raises `TypeError` and `ValueError` for what is not a time.
    """
    if not isinstance(wanted, int | float | timedelta):
        raise TypeError(f"{wanted!r} is not a time; expected seconds or a timedelta")
    seconds = wanted.total_seconds() if isinstance(wanted, timedelta) else wanted
    return timedelta(seconds=min(max(seconds, 0), _MAX_DELAY_SECONDS))


class HandlerError(Exception):
    """The handlers can't be used: a module does not import, or a registration contradicts another."""


@dataclass(frozen=True)
class Handler:
    """One registered function. `place` is a source's or a provider's name; `pattern` may hold `*`.

    models: of a command, what it takes and gives (`jobs.command_models`)
    """

    name: str
    place: str
    pattern: str
    function: Callable[..., Any]
    attempts: int
    backoff: tuple[timedelta, timedelta]
    timeout: timedelta
    isolation: str | None = None
    limit: RunLimit | None = None
    breaker: int | None = None
    models: str | None = None
    is_named: bool = True
    tx: str | None = None
    batch: BatchSize | None = None

    @cached_property
    def signature(self) -> Signature:
        """How the function is called."""
        return signature_of_long(self.function) if self.is_long else signature_of(self.function)

    @property
    def is_long(self) -> bool:
        """Whether it works without an open transaction, under leases that are renewed."""
        return self.tx == NO_TRANSACTION

    @property
    def limits(self) -> tuple[object, ...]:
        """What a run is held to."""
        return (
            self.attempts,
            self.backoff,
            self.timeout,
            self.isolation,
            self.limit,
            self.breaker,
            self.tx,
            self.batch,
        )

    def takes(self, source: str, provider: str, type: str) -> bool:  # noqa: A002  the field's word
        """Return whether such an event is for this handler."""
        at_place = self.place == source or self.place.replace("-", "_") == provider.replace("-", "_")
        return at_place and _matcher(self.pattern).fullmatch(type) is not None

    def delay(self, attempt: int) -> timedelta:
        """How long to wait after failed attempt number `attempt`: doubling up to the maximum, half of it jitter."""
        first, longest = (span.total_seconds() for span in self.backoff)
        full = min(longest, first * 2.0 ** min(attempt - 1, 60))
        return timedelta(seconds=full * random.uniform(0.5, 1))  # noqa: S311  spreads load, keeps no secret


class Registry:
    """The handlers of one worker, in the order they were registered; a `receiver.ledger.runs.claim_plan.Planner`."""

    def __init__(self) -> None:
        self._handlers: list[Handler] = []
        self._took: dict[str, float] = {}

    def add(self, handler: Handler) -> None:
        """Register. Raises `HandlerError` for a name that is taken by another function, or has other limits.

        A run knows its handler by name only, so what holds for a name must hold for all its patterns.
        """
        for other in self._handlers:
            if other.name == handler.name and other.function is not handler.function:
                raise HandlerError(f"two handlers are called '{handler.name}'; give one of them name=")
            if other.name == handler.name and other.limits != handler.limits:
                raise HandlerError(
                    f"handler '{handler.name}' has different attempts, backoff, timeout, isolation, tx or limits in "
                    "two places; make them equal, or give one of them name="
                )
        self._handlers.append(handler)

    def require_places(self, sources: Collection[str], providers: Collection[str]) -> None:
        """Raise `HandlerError` naming every handler whose place is not one of these sources and providers."""
        known = {provider.replace("-", "_") for provider in providers}
        wrong = [
            each
            for each in self._handlers
            if each.place not in sources and each.place.replace("-", "_") not in known
        ]
        if wrong:
            raise HandlerError("; ".join(_misplaced(handler, [*sources, *providers]) for handler in wrong))

    def matching(self, source: str, provider: str, type: str) -> Sequence[Handler]:  # noqa: A002
        """Return the handlers that take such an event, each once however many patterns it has."""
        taking: dict[str, Handler] = {}
        for handler in self._handlers:
            if handler.takes(source, provider, type):
                taking.setdefault(handler.name, handler)
        return list(taking.values())

    def named(self, name: str) -> Handler | None:
        """Return a handler by name, or None."""
        return next((handler for handler in self._handlers if handler.name == name), None)

    def with_breakers(self) -> set[str]:
        """Return the names of the handlers that are stopped when they fail again and again."""
        return {handler.name for handler in self._handlers if handler.breaker is not None}

    def places(self) -> dict[str, int]:
        """Return the handlers that are limited to a number at once, and that number."""
        limited = {handler.name: handler.limit for handler in self._handlers if handler.limit}
        return {name: limit.concurrency for name, limit in limited.items() if limit.concurrency}

    def without_places(self) -> list[str]:
        """Return the names of the handlers of which any number may run at once."""
        return sorted({handler.name for handler in self._handlers} - self.places().keys())

    def note(self, name: str, took: timedelta) -> None:
        """Note how long an attempt of a handler took; the last few count."""
        seconds = took.total_seconds()
        self._took[name] = (self._took.get(name, seconds) + seconds) / 2

    def took(self, name: str) -> timedelta | None:
        """Return how long the last attempts of a handler took; None if it was not tried here yet."""
        seconds = self._took.get(name)
        return None if seconds is None else timedelta(seconds=seconds)

    def is_slow(self, source: str, provider: str, type: str) -> bool:  # noqa: A002
        """Return whether a handler that takes such an event took more than `SLOW_AFTER` lately."""
        slow = SLOW_AFTER.total_seconds()
        return any(
            self._took.get(handler.name, 0) > slow for handler in self.matching(source, provider, type)
        )

    def patterns(self, name: str) -> list[tuple[str, str]]:
        """Return the places and patterns of a handler."""
        return [(handler.place, handler.pattern) for handler in self._handlers if handler.name == name]

    def rows(self) -> list[Row]:
        """Return what others may know of the handlers: name, place, pattern, attempts, timeout, size of a batch."""
        return [
            (
                each.name,
                each.place,
                each.pattern,
                each.attempts,
                each.timeout,
                each.batch.most if each.batch else None,
            )
            for each in self._handlers
        ]

    def models(self) -> dict[str, str]:
        """Return what commands take and give, as JSON, by the handler's name."""
        return {each.name: each.models for each in self._handlers if each.models is not None}

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)


registry = Registry()
"""The process's own, filled by `@on` as handler modules are imported."""


@overload
def on(
    place: str,
    pattern: str = "*",
    *,
    name: str | None = None,
    attempts: int = 10,
    backoff: tuple[float | timedelta, float | timedelta] = DEFAULT_BACKOFF,
    timeout: float | timedelta = timedelta(seconds=30),
    rate: str | None = None,
    concurrency: int | None = None,
    per: str | None = None,
    breaker: int | None = None,
    tx: Literal["none"],
) -> Callable[[LongFunction], LongFunction]: ...


@overload
def on(
    place: str,
    pattern: str = "*",
    *,
    name: str | None = None,
    attempts: int = 10,
    backoff: tuple[float | timedelta, float | timedelta] = DEFAULT_BACKOFF,
    timeout: float | timedelta = timedelta(seconds=30),
    isolation: str | None = None,
    rate: str | None = None,
    concurrency: int | None = None,
    per: str | None = None,
    breaker: int | None = None,
    tx: None = None,
) -> Callable[[Function], Function]: ...


def on(  # noqa: PLR0913  the public signature, all but two by keyword
    place: str,
    pattern: str = "*",
    *,
    name: str | None = None,
    attempts: int = 10,
    backoff: tuple[float | timedelta, float | timedelta] = DEFAULT_BACKOFF,
    timeout: float | timedelta = timedelta(seconds=30),
    isolation: str | None = None,
    rate: str | None = None,
    concurrency: int | None = None,
    per: str | None = None,
    breaker: int | None = None,
    tx: str | None = None,
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Have a function take events of a source (or a provider) whose type fits the pattern.

    It takes `(event, tx)`, tx a SQLAlchemy `Connection` in the run's transaction, or `(event, session)`, an ORM
    `Session` in it; an `async def` gets an `AsyncConnection` or `AsyncSession`. Name or annotation tell which.

    `pattern` is an event type or has `*` for any run of characters ("invoice.*"). `attempts` counts the first;
    after the last failure the run is dead. `backoff` is (first pause, longest pause), `timeout` the time one
    attempt may take (an hour at most); numbers are seconds. `isolation` is the level of the handler's transaction
    ("read committed", "repeatable read", "serializable"), the session's own if None; a conflict that PostgreSQL then
    finds is a failed attempt like any. `rate` is how often it may start ("100/m"; s, m, h or d), `concurrency` how many
    may run at once, in all workers; both for each `per` by itself ("account", "source"), if that is given. After
    `breaker` failures in a row by one error the handler is paused, and one event is tried from time to time.

    `tx="none"` is for long work: the handler takes `(event)` alone, no transaction is open, and it opens short ones
    by `with event.tx() as tx:`. What it commits so stays, whatever happens next: it is done at least once.
    Raises `HandlerError` for values that make no sense.
    """
    require_names("on", place, pattern)

    def register(function: Callable[..., object]) -> Callable[..., object]:
        called = name_of(function, name)
        _require_transaction(called, tx, isolation)
        if name is None and uses_steps(function):
            raise HandlerError(STEPS_NEED_A_NAME.format(handler=called))
        handler = handler_of(
            called, place, pattern, function, attempts, backoff, timeout, isolation, breaker, tx
        )
        limit = _run_limit(called, rate, concurrency, per)
        registry.add(replace(handler, limit=limit, is_named=name is not None))
        return function

    return register


def require_names(decorator: str, place: object, pattern: object) -> None:
    """Raise `HandlerError` where a decorator was given something else than a source and a type."""
    if not isinstance(place, str) or not isinstance(pattern, str):
        called = getattr(place, "__qualname__", repr(place))
        expected = f'as in @{decorator}("stripe", "invoice.*")'
        raise HandlerError(f"@{decorator} at {called}: expected a source and a type, {expected}")


def name_of(function: Callable[..., Any], name: str | None) -> str:
    """Return what a handler is called, by itself or as it was told."""
    return name or f"{function.__module__}.{function.__qualname__}"


def handler_of(  # noqa: PLR0913, PLR0917  what all kinds of handlers have
    called: str,
    place: str,
    pattern: str,
    function: Callable[..., Any],
    attempts: int,
    backoff: tuple[float | timedelta, float | timedelta],
    timeout: float | timedelta,
    isolation: str | None,
    breaker: int | None,
    tx: str | None = None,
) -> Handler:
    """Check what handlers of any kind are declared with. Raises `HandlerError`."""
    pauses, limit = _times(called, attempts, backoff, timeout)
    _require_isolation(called, isolation)
    _require_callable(called, function, is_long=tx is not None)
    if breaker is not None and (isinstance(breaker, bool) or not isinstance(breaker, int) or breaker < 1):
        raise HandlerError(f"handler '{called}': {breaker=} is wrong; expected a number of failures from 1")
    return Handler(
        called, place, pattern, function, attempts, pauses, limit, isolation, breaker=breaker, tx=tx
    )


def import_handlers(modules: Iterable[str]) -> Registry:
    """Import the user's modules, looking in the current directory too, and give the filled registry.

    Raises `HandlerError` naming the module and what went wrong in it.
    """
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    for module in modules:
        try:
            importlib.import_module(module)
        except HandlerError:
            raise
        except (Exception, SystemExit) as error:
            raise HandlerError(
                f"handler module '{module}' does not import: {' '.join(summarize(error).split())}; "
                "mend it, or take it out of [receiver] handlers"
            ) from error
    return registry


def _misplaced(handler: Handler, places: Collection[str]) -> str:
    close = get_close_matches(handler.place, places, n=1)
    hint = (
        f"did you mean '{close[0]}'?" if close else "`hookonce sources list` and `providers list` show them"
    )
    return f"handler '{handler.name}' takes events of '{handler.place}', no source and no provider; {hint}"


def _times(
    called: str,
    attempts: int,
    backoff: tuple[float | timedelta, float | timedelta],
    timeout: float | timedelta,
) -> tuple[tuple[timedelta, timedelta], timedelta]:
    """Return the first and the longest pause, and the time limit. Raises `HandlerError`."""
    try:
        first, longest = (_duration(value) for value in backoff)
    except (TypeError, ValueError, OverflowError):
        wanted = (
            "expected two pauses, the first and the longest, in seconds or as timedeltas: backoff=(5, 3600)"
        )
        raise HandlerError(f"handler '{called}': {backoff=} is wrong; {wanted}") from None
    try:
        limit = _duration(timeout)
    except (TypeError, ValueError, OverflowError):
        raise HandlerError(
            f"handler '{called}': {timeout=} is wrong; expected seconds or a timedelta"
        ) from None
    is_in_time = timedelta(0) < limit <= MAX_TIMEOUT
    if attempts < 1 or first < timedelta(0) or longest < first or not is_in_time:
        raise HandlerError(
            f"handler '{called}': attempts from 1, 0 <= first pause <= longest pause, "
            f"timeout above 0 and up to {MAX_TIMEOUT.total_seconds():g} s"
        )
    return (first, longest), limit


def _require_isolation(called: str, isolation: str | None) -> None:
    """Raise `HandlerError` for what is no isolation level."""
    if isolation is not None and isolation not in ISOLATION_LEVELS:
        raise HandlerError(
            f"handler '{called}': {isolation=} is not an isolation level; expected one of "
            + ", ".join(f"'{level}'" for level in ISOLATION_LEVELS)
        )


def _run_limit(called: str, rate: str | None, concurrency: int | None, per: str | None) -> RunLimit | None:
    """Return what a handler's runs are held to, if anything. Raises `HandlerError`."""
    if rate is None and concurrency is None:
        if per is not None:
            raise HandlerError(f"handler '{called}': per={per!r} without rate= or concurrency=")
        return None
    if per is not None and per not in PER:
        raise HandlerError(
            f"handler '{called}': {per=} is nothing to count by; expected 'account' or 'source'"
        )
    if concurrency is not None and (not isinstance(concurrency, int) or concurrency < 1):
        raise HandlerError(f"handler '{called}': {concurrency=} is wrong; expected a number from 1")
    try:
        return RunLimit(None if rate is None else Rate.parse(rate), concurrency, per)
    except ValueError as error:
        raise HandlerError(f"handler '{called}': {error}") from None


def _require_transaction(called: str, tx: str | None, isolation: str | None) -> None:
    """Raise `HandlerError` for a `tx=` there is not, or one with an isolation level for a transaction there is not."""
    if tx not in {None, NO_TRANSACTION}:
        raise HandlerError(
            f"handler '{called}': {tx=} is wrong; expected 'none', or nothing for a transaction"
        )
    if tx is not None and isolation is not None:
        raise HandlerError(
            f"handler '{called}': isolation={isolation!r} is of a transaction, and tx='none' gives none"
        )


def _require_callable(called: str, function: Callable[..., Any], *, is_long: bool) -> None:
    """Raise `HandlerError` for a function that can't be called as a handler."""
    try:
        signature_of_long(function) if is_long else signature_of(function)
    except TypeError:
        long = "one argument, (event), since it has tx='none'"
        expected = long if is_long else "two arguments, (event, tx) or (event, session)"
        raise HandlerError(f"handler '{called}' must take {expected}") from None
    except ValueError as error:
        raise HandlerError(f"handler '{called}' {error}") from None


def _duration(value: float | timedelta) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)
