"""The handlers of a worker: which of the user's functions take which events, and how often they may fail.

A handler is `handler(event, tx)` or `handler(event, session)`, plain or `async def`. It returns (done; what it
returned is stored with the run), raises `RetryLater` (again later, not counted) or `GiveUp` (dead), or raises anything
else (a failed attempt). Its name is the identity of its runs: renaming a function makes new runs for new events and
leaves old ones waiting; `name=` keeps them.
"""

import json
import random
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from hookonce.jobs.event import Postponed, ReceivedEvent
from hookonce.jobs.handler_signature import Signature, signature_of, signature_of_long
from hookonce.providers.kit.events.subjects import About, about
from hookonce.receiver.ledger.handlers import LIMITS, HandlerLimits, Row, matcher
from hookonce.receiver.ledger.runs.run_limits import BatchSize, RunLimit
from hookonce.receiver.ledger.waits import Awaited

QUICK = timedelta(milliseconds=5)
"""Attempts that take less may share a flush with others (`jobs.attempts.train`)."""
_LAST = 20
"""Attempts of a handler by which it is told whether it is quick."""
_KINDS = 4096
"""Sources and types of which it is remembered who takes them."""
SLOW_AFTER = timedelta(milliseconds=100)
"""A handler that takes longer is kept from holding up others: its events are claimed one at a time."""
DEFAULT_BACKOFF = (timedelta(seconds=5), timedelta(hours=1))

NO_TRANSACTION = "none"
"""`tx=` of a handler that opens short transactions of its own (`event.tx()`)."""
SKIP, FLAG = "skip", "flag"
"""`stale=`: what becomes of an event that is older than what its handler has done of the entity."""
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


class RetryLater(Postponed):
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

    models: of a command, what it takes and gives (`jobs.configured.commands`)
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
    durable: bool = False
    stale: str | None = None
    entity: tuple[str, ...] | None = None
    version: str | None = None
    awaits: tuple[tuple[str, Awaited], ...] = ()

    @cached_property
    def about(self) -> About | None:
        """The subject of its events, where it is declared with the handler."""
        return about(entity=self.entity, version=self.version) if self.entity and self.version else None

    @cached_property
    def signature(self) -> Signature:
        """How the function is called."""
        return signature_of_long(self.function) if self.is_long else signature_of(self.function)

    @cached_property
    def is_long(self) -> bool:
        """Whether it works without an open transaction, under leases that are renewed."""
        return self.tx == NO_TRANSACTION

    def is_like(self, other: "Handler") -> bool:
        """Return whether a run is held to the same by both, whatever they take."""
        kept = replace(
            other, place=self.place, pattern=self.pattern, models=self.models, is_named=self.is_named
        )
        return kept == self

    @property
    def declaration(self) -> str | None:
        """The declaration that others read beside the handler's row, as JSON; None where there is nothing."""
        limit = self.limit or RunLimit()
        limits = HandlerLimits(
            rate=str(limit.rate) if limit.rate else None,
            concurrency=limit.concurrency,
            per=limit.per,
            breaker=self.breaker,
            tx=self.tx,
            wait_seconds=self.batch.wait.total_seconds() or None if self.batch else None,
            stale=self.stale,
            entity=self.entity,
            version=self.version,
            awaits=dict(self.awaits) or None,
        ).model_dump(exclude_none=True)
        said = json.loads(self.models) if self.models else {}
        said |= {LIMITS: limits} if limits else {}
        return json.dumps(said) if said else None

    def takes(self, source: str, provider: str, type: str) -> bool:  # noqa: A002  the field's word
        """Return whether such an event is for this handler."""
        at_place = self.place == source or self.place.replace("-", "_") == provider.replace("-", "_")
        return at_place and matcher(self.pattern).fullmatch(type) is not None

    def delay(self, attempt: int) -> timedelta:
        """How long to wait after failed attempt number `attempt`: doubling up to the maximum, half of it jitter."""
        first, longest = (span.total_seconds() for span in self.backoff)
        full = min(longest, first * 2.0 ** min(attempt - 1, 60))
        return timedelta(seconds=full * random.uniform(0.5, 1))  # noqa: S311  spreads load, keeps no secret


class Registry:
    """The handlers of one worker, in the order they were registered."""

    def __init__(self) -> None:
        self._handlers: list[Handler] = []
        self._by_name: dict[str, Handler] = {}
        self._taking: dict[tuple[str, str, str], Sequence[Handler]] = {}
        self._took: dict[str, float] = {}
        self._were_quick: dict[str, deque[bool]] = {}

    def add(self, handler: Handler) -> None:
        """Register. Raises `HandlerError` for a name that is taken by another function, or has other limits.

        A run knows its handler by name only, so what holds for a name must hold for all its patterns.
        """
        for other in self._handlers:
            if other.name == handler.name and other.function is not handler.function:
                raise HandlerError(f"two handlers are called '{handler.name}'; give one of them name=")
            if other.name == handler.name and not handler.is_like(other):
                raise HandlerError(
                    f"handler '{handler.name}' has different attempts, backoff, timeout, isolation, tx, stale or "
                    "limits in two places; make them equal, or give one of them name="
                )
        self._handlers.append(handler)
        self._by_name.setdefault(handler.name, handler)
        self._forget()

    def keep(self, handlers: Iterable[Handler]) -> None:
        """Have these handlers, and none besides."""
        self._handlers = list(handlers)
        self._by_name = {handler.name: handler for handler in reversed(self._handlers)}
        self._forget()

    def _forget(self) -> None:
        """Forget what was worked out from the handlers so far."""
        self._taking.clear()
        for name in ("with_breakers", "most_at_once"):
            self.__dict__.pop(name, None)

    def require_places(self, sources: Collection[str], providers: Collection[str]) -> None:
        """Raise `HandlerError` naming every handler whose place is not one of these sources and providers."""
        known = {provider.replace("-", "_") for provider in providers}
        wrong = [
            (each.name, verb, place)
            for each in self._handlers
            for verb, place in [("takes", each.place), *(("awaits", one.source) for _, one in each.awaits)]
            if place not in sources and place.replace("-", "_") not in known
        ]
        if wrong:
            raise HandlerError("; ".join(_misplaced(*each, [*sources, *providers]) for each in wrong))

    def matching(self, source: str, provider: str, type: str) -> Sequence[Handler]:  # noqa: A002
        """Return the handlers that take such an event, each once however many patterns it has."""
        kind = (source, provider, type)
        if (known := self._taking.get(kind)) is None:
            taking: dict[str, Handler] = {}
            for handler in self._handlers:
                if handler.takes(*kind):
                    taking.setdefault(handler.name, handler)
            if len(self._taking) >= _KINDS:
                self._taking.clear()
            known = self._taking[kind] = list(taking.values())
        return known

    def named(self, name: str) -> Handler | None:
        """Return a handler by name, or None."""
        return self._by_name.get(name)

    @cached_property
    def with_breakers(self) -> dict[str, timedelta]:
        """Return the handlers that are stopped when they fail again and again, and how far apart a rate has runs."""
        return {
            handler.name: handler.limit.rate.interval
            if handler.limit and handler.limit.rate
            else timedelta(0)
            for handler in self._handlers
            if handler.breaker is not None
        }

    @cached_property
    def most_at_once(self) -> dict[str, int]:
        """Return the handlers that are limited to a number at once, and that number."""
        limited = {handler.name: handler.limit for handler in self._handlers if handler.limit}
        return {name: limit.concurrency for name, limit in limited.items() if limit.concurrency}

    def schedules(self) -> dict[str, str]:
        """Return by which rate each handler's runs are given times; empty where it has none."""
        return {handler.name: handler.limit.schedule if handler.limit else "" for handler in self._handlers}

    def without_limit(self) -> list[str]:
        """Return the names of the handlers of which any number may run at once."""
        return sorted({handler.name for handler in self._handlers} - self.most_at_once.keys())

    def note(self, name: str, took: timedelta) -> None:
        """Note how long an attempt of a handler took; the last few count."""
        seconds = took.total_seconds()
        self._took[name] = (self._took.get(name, seconds) + seconds) / 2
        self._were_quick.setdefault(name, deque(maxlen=_LAST)).append(took < QUICK)

    def took(self, name: str) -> timedelta | None:
        """Return how long the last attempts of a handler took; None if it was not tried here yet."""
        seconds = self._took.get(name)
        return None if seconds is None else timedelta(seconds=seconds)

    def after(self, name: str, attempt: int) -> tuple[timedelta, int | None]:
        """Return how long a run waits after an attempt that failed, and how many its handler is given, if known."""
        handler = self.named(name)
        return (timedelta(0), None) if handler is None else (handler.delay(attempt), handler.attempts)

    def is_quick(self, name: str) -> bool:
        """Return whether all of the last attempts of a handler, but one in `_LAST`, took less than `QUICK`."""
        were_quick = self._were_quick.get(name, ())
        return were_quick.count(False) <= len(were_quick) // _LAST if were_quick else False

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

    def declarations(self) -> dict[str, str | None]:
        """Return what else handlers say of themselves, by name: see `receiver.ledger.handlers.register_handlers`."""
        return {each.name: each.declaration for each in self._handlers}

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)


registry = Registry()
"""The process's own, filled by `@on` as handler modules are imported."""


def _misplaced(handler: str, verb: str, place: str, places: Collection[str]) -> str:
    close = get_close_matches(place, places, n=1)
    hint = (
        f"did you mean '{close[0]}'?" if close else "`hookonce sources list` and `providers list` show them"
    )
    return f"handler '{handler}' {verb} events of '{place}', no source and no provider; {hint}"
