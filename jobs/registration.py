"""`@on` and `@on_batch`: check what a function is declared with, and register it; the import of the user's modules."""

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, overload

from hookonce.jobs import handlers
from hookonce.jobs.event import ReceivedEvent
from hookonce.jobs.failures.error_summary import summarize
from hookonce.jobs.handler_signature import signature_of, signature_of_long, uses_steps
from hookonce.jobs.handlers import (
    DEFAULT_BACKOFF,
    FLAG,
    ISOLATION_LEVELS,
    NO_TRANSACTION,
    SKIP,
    STEPS_NEED_A_NAME,
    Handler,
    HandlerError,
    Registry,
)
from hookonce.providers.kit.reading import json_paths
from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.ledger.runs.run_limits import PER, BatchSize, Rate, RunLimit
from hookonce.receiver.ledger.waits import Awaited

Function = TypeVar("Function", bound=Callable[[ReceivedEvent, Any], object])
LongFunction = TypeVar("LongFunction", bound=Callable[[ReceivedEvent], object])
BatchFunction = TypeVar("BatchFunction", bound=Callable[[Any, Any], object])

MAX_TIMEOUT = timedelta(hours=1)
"""For one attempt; RQ's own limit (`receiver.redis.work_queue.JOB_TIMEOUT`) is beyond it and must never be reached."""

_LONGEST_WAIT = timedelta(minutes=1)
_UNFIT_FOR_BATCHES = {
    "tx": "a batch is one transaction",
    "stale": "its events have many entities; take them one by one, with @on",
    "entity": "its events have many entities; take them one by one, with @on",
    "version": "its events have many entities; take them one by one, with @on",
    "awaits": "a batch can't wait; take the events one by one, with @on",
}
_AWAITS = '{"ci": ("github", "check_suite", "$.check_suite.head_sha")}'
_WAIT = re.compile(r"(\d{1,5})(ms|s)", re.ASCII)


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
    durable: bool = False,
    stale: Literal["skip", "flag"] | None = None,
    entity: tuple[str, ...] | None = None,
    version: str | None = None,
    awaits: Mapping[str, tuple[str, str, str]] | None = None,
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
    durable: bool = False,
    stale: str | None = None,
    entity: tuple[str, ...] | None = None,
    version: str | None = None,
    awaits: Mapping[str, tuple[str, str, str]] | None = None,
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
    `breaker` failures in a row by one error the handler is paused, and one event is tried from time to time. With
    `durable` each run's commit is flushed before it counts as done; otherwise quick ones share a flush, a few
    milliseconds later, and others may see their rows before these would survive a crash of the server.

    With `stale` the newest wins: what is older than what this handler has done of the event's entity is left out
    ("skip"), or `event.is_stale` is true ("flag"). Where the sender's module does not say what an event is about,
    `entity=("$.order.id",)` and `version="$.updated_at"` do: paths into `event.data`. It needs `name=`.

    `awaits` says for which other events `event.wait` may wait, each under a name: a source (or a provider), a type or
    pattern, and the path into that event's `data` by which it is told apart, as in
    `{"ci": ("github", "check_suite", "$.check_suite.head_sha")}`. It needs `name=`.

    `tx="none"` is for long work: the handler takes `(event)` alone, no transaction is open, and it opens short ones
    by `with event.tx() as tx:`. What it commits so stays, whatever happens next: it is done at least once.
    Raises `HandlerError` for values that make no sense.
    """
    _require_names("on", place, pattern)
    limits = _Limits(attempts, backoff, timeout, isolation, rate, concurrency, per, breaker, tx)

    def register(function: Callable[..., object]) -> Callable[..., object]:
        if name is None and uses_steps(function):
            raise HandlerError(STEPS_NEED_A_NAME.format(handler=_name_of(function, name)))
        handler = limits.handler(_name_of(function, name), place, pattern, function)
        handler = replace(handler, is_named=name is not None, durable=durable, stale=stale)
        handler = replace(handler, entity=entity, version=version)
        _require_stale(handler)
        handlers.registry.add(
            handler if awaits is None else replace(handler, awaits=_awaited(handler, awaits))
        )
        return function

    return register


def on_batch(  # noqa: PLR0913  the public signature, all but two by keyword
    place: str,
    pattern: str = "*",
    *,
    most: int = 500,
    wait: str | float | timedelta = 0,
    name: str | None = None,
    attempts: int = 10,
    backoff: tuple[float | timedelta, float | timedelta] = DEFAULT_BACKOFF,
    timeout: float | timedelta = timedelta(seconds=30),
    isolation: str | None = None,
    rate: str | None = None,
    concurrency: int | None = None,
    per: str | None = None,
    breaker: int | None = None,
    **unfit: object,
) -> Callable[[BatchFunction], BatchFunction]:
    """Have a function take many events of a source (or a provider) at once, in one transaction.

    It takes `(events, tx)` or `(events, session)`, as handlers of `@on` do one event; each event keeps its own run. It
    gets up to `most` that are due, the oldest first; if they are fewer, the first of them waits for
    others for `wait` ("200ms", "2s", seconds or a timedelta; a minute at most). `timeout` is for the whole batch.

    If it raises, what it wrote is rolled back, nobody is charged, and both halves are tried by themselves; so on until
    one event stands alone, which is treated as any: an attempt is used up, there is a pause, the last of them ends in
    a dead run. It may name events by `GiveUp(…, event=…)` and `RetryLater(…, event=…)`. The other parameters are those
    of `@on`: `rate` and `concurrency` count events, so a batch has no more of them than these allow. Raises
    `HandlerError` for values that make no sense.
    """
    _require_names("on_batch", place, pattern)
    limits = _Limits(attempts, backoff, timeout, isolation, rate, concurrency, per, breaker)

    def register(function: BatchFunction) -> BatchFunction:
        called = _name_of(function, name)
        _require_fit(called, place, unfit)
        handler = limits.handler(called, place, pattern, function, given="events")
        with _mistakes_of(f"handler '{called}'"):
            handlers.registry.add(replace(handler, batch=BatchSize(most, _batch_wait(wait))))
        return function

    return register


def _require_names(decorator: str, place: object, pattern: object) -> None:
    """Raise `HandlerError` where a decorator was given something else than a source and a type."""
    if not isinstance(place, str) or not isinstance(pattern, str):
        called = getattr(place, "__qualname__", repr(place))
        expected = f'as in @{decorator}("stripe", "invoice.*")'
        raise HandlerError(f"@{decorator} at {called}: expected a source and a type, {expected}")


def _name_of(function: Callable[..., Any], name: str | None) -> str:
    """Return what a handler is called, by itself or as it was told."""
    return name or f"{function.__module__}.{function.__qualname__}"


class _Limits(NamedTuple):
    """The options of handlers of any kind."""

    attempts: int
    backoff: tuple[float | timedelta, float | timedelta]
    timeout: float | timedelta
    isolation: str | None
    rate: str | None
    concurrency: int | None
    per: str | None
    breaker: int | None
    tx: str | None = None

    def handler(
        self, called: str, place: str, pattern: str, function: Callable[..., Any], given: str = "event"
    ) -> Handler:
        """Return a handler that has these options; `given`: what it takes first. Raises `HandlerError`."""
        attempts, backoff, timeout, isolation, rate, concurrency, per, breaker, tx = self
        for what, text in (("name", called), ("source or provider", place), ("type", pattern)):
            _require_storable(what, text)
        with _mistakes_of(f"handler '{called}'"):
            _require_transaction(tx, isolation)
            pauses, longest = _times(attempts, backoff, timeout)
            if breaker is not None and not _is_count(breaker):
                raise ValueError(f"{breaker=} is wrong; expected a number of failures from 1")
            limit = _run_limit(rate, concurrency, per)
        _require_callable(called, function, given, is_long=tx is not None)
        return Handler(
            called, place, pattern, function, attempts, pauses, longest, isolation, limit, breaker, tx=tx
        )


def _require_storable(what: str, text: str) -> None:
    """Refuse what PostgreSQL can't hold: claims would fail, for all handlers of the worker."""
    try:
        is_storable = "\0" not in text.encode().decode()
    except UnicodeEncodeError:
        is_storable = False
    if not is_storable:
        raise HandlerError(f"a handler's {what} is {text!a}; expected text without NUL or lone surrogates")


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
                "fix it, or take it out of [receiver] handlers"
            ) from error
    return handlers.registry


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


@contextmanager
def _mistakes_of(what: str) -> Iterator[None]:
    """Have a `ValueError` be a `HandlerError` that names its handler, or an option of that."""
    try:
        yield
    except ValueError as error:
        raise HandlerError(f"{what}: {error}") from None


def _times(
    attempts: int, backoff: tuple[float | timedelta, float | timedelta], timeout: float | timedelta
) -> tuple[tuple[timedelta, timedelta], timedelta]:
    """Return the first and the longest pause, and the time limit. Raises `ValueError`."""
    try:
        first, longest = (_duration(value) for value in backoff)
    except (TypeError, ValueError, OverflowError):
        wanted = "expected two pauses, the first and the longest, in seconds or as timedeltas"
        raise ValueError(f"{backoff=} is wrong; {wanted}: backoff=(5, 3600)") from None
    try:
        limit = _duration(timeout)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{timeout=} is wrong; expected seconds or a timedelta") from None
    wrong = []
    if not _is_count(attempts):
        wrong.append(f"{attempts=} is wrong; expected a number from 1")
    if not timedelta(0) <= first <= longest:
        wrong.append(f"{backoff=} is wrong; expected 0 <= first pause <= longest pause")
    if not timedelta(0) < limit <= MAX_TIMEOUT:
        most = f"{MAX_TIMEOUT.total_seconds():g} s"
        wrong.append(f"{timeout=} is wrong; expected more than 0, and {most} at most")
    if wrong:
        raise ValueError("; ".join(wrong))
    return (first, longest), limit


def _run_limit(rate: str | None, concurrency: int | None, per: str | None) -> RunLimit | None:
    """Return what a handler's runs are held to, if anything. Raises `ValueError`."""
    if rate is None and concurrency is None:
        if per is not None:
            raise ValueError(f"{per=} without rate= or concurrency=")
        return None
    if per is not None and per not in PER:
        raise ValueError(f"{per=} is nothing to count by; expected 'account' or 'source'")
    if concurrency is not None and not _is_count(concurrency):
        raise ValueError(f"{concurrency=} is wrong; expected a number from 1")
    return RunLimit(None if rate is None else Rate.parse(rate), concurrency, per)


def _require_transaction(tx: str | None, isolation: str | None) -> None:
    """Raise `ValueError` for a `tx=` or an isolation level there is not, or one for a transaction there is not."""
    if tx not in {None, NO_TRANSACTION}:
        raise ValueError(f"{tx=} is wrong; expected 'none', or nothing for a transaction")
    if tx is not None and isolation is not None:
        raise ValueError(f"{isolation=} is of a transaction, and tx='none' gives none")
    if isolation is not None and isolation not in ISOLATION_LEVELS:
        levels = ", ".join(f"'{level}'" for level in ISOLATION_LEVELS)
        raise ValueError(f"{isolation=} is not an isolation level; expected one of {levels}")


def _require_stale(handler: Handler) -> None:
    """Raise `HandlerError` for a `stale=` that can't be, and for paths that are none or half of what it needs."""
    with _mistakes_of(f"handler '{handler.name}'"):
        stale, paths = handler.stale, (handler.entity, handler.version)
        wrong = None
        if stale is None and paths != (None, None):
            wrong = "entity= and version= are for stale=; expected stale='skip' or stale='flag' with them"
        elif stale is not None and stale not in (SKIP, FLAG):
            wrong = f"{stale=} is wrong; expected 'skip' or 'flag'"
        elif stale is not None and handler.is_long:
            wrong = "stale= needs a transaction, and tx='none' gives none; leave one of them out"
        elif stale is not None and not handler.is_named:
            wrong = 'stale= needs name=, as in name="orders": what was done is kept under that name'
        elif paths != (None, None):
            _require_paths(*paths)
        if wrong is not None:
            raise ValueError(wrong)


def _awaited(handler: Handler, awaits: object) -> tuple[tuple[str, Awaited], ...]:
    """Return what a handler waits for, by name. Raises `HandlerError` for what can't be waited for."""
    called = f"handler '{handler.name}': awaits="
    if handler.is_long:
        raise HandlerError(f"{called} needs a transaction, and tx='none' gives none; leave one of them out")
    if not handler.is_named:
        raise HandlerError(f'{called} needs name=, as in name="fulfil": waits are kept under that name')
    if not isinstance(awaits, Mapping) or not awaits:
        raise HandlerError(f"{called}{awaits!r} is wrong; expected {_AWAITS}")
    found = []
    for name, told in awaits.items():
        is_said = isinstance(told, tuple) and len(told) == 3 and all(isinstance(one, str) for one in told)  # noqa: PLR2004
        if not isinstance(name, str) or not name or not is_said:
            raise HandlerError(
                f"{called} {name!r}: {told!r} is wrong; expected source, type and path, as in {_AWAITS}"
            )
        awaited = Awaited(*told)
        for what, text in (("name of a wait", name), ("source or provider", told[0]), ("type", told[1])):
            _require_storable(what, text)
        with _mistakes_of(f"{called} '{name}'"):
            _require_path(awaited.place)
        found.append((name, awaited))
    return tuple(found)


def _require_paths(entity: object, version: object) -> None:
    if entity is None or version is None:
        missing = "entity" if entity is None else "version"
        raise ValueError(f"entity= and version= go together; {missing}= is missing")
    if not isinstance(entity, tuple) or not entity:
        raise ValueError(f'{entity=} is no tuple of paths; expected one like entity=("$.order.id",)')
    for path in (*entity, version):
        _require_path(str(path))


def _require_path(path: str) -> None:
    steps = json_paths.parse(path)
    if not steps or None in steps:
        raise ValueError(f"{path!r} is not the path of one value; expected one like '$.order.id'")


def _require_callable(called: str, function: Callable[..., Any], given: str, *, is_long: bool) -> None:
    """Raise `HandlerError` for a function that can't be called as a handler."""
    try:
        signature_of_long(function) if is_long else signature_of(function, given)
    except TypeError:
        long = "one argument, (event), since it has tx='none'"
        expected = long if is_long else f"two arguments, ({given}, tx) or ({given}, session)"
        raise HandlerError(f"handler '{called}' must take {expected}") from None
    except ValueError as error:
        raise HandlerError(f"handler '{called}' {error}") from None


def _duration(value: float | timedelta) -> timedelta:
    if isinstance(value, bool):
        raise TypeError(f"{value} is no time")
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


def _require_fit(called: str, place: str, unfit: dict[str, object]) -> None:
    for option in unfit:
        why = _UNFIT_FOR_BATCHES.get(option, "there is no such parameter")
        raise HandlerError(f"handler '{called}': {option}= does not go with @on_batch: {why}")
    if place == COMMAND or place.startswith("commands."):
        raise HandlerError(
            f"handler '{called}': a command is done by itself, with @on; its client waits for it"
        )


def _batch_wait(wait: str | float | timedelta) -> timedelta:
    """Return how long to wait. Raises ValueError."""
    found, longest = wait, _LONGEST_WAIT.total_seconds()
    if isinstance(wait, str) and (form := _WAIT.fullmatch(wait)):
        found = timedelta(milliseconds=int(form[1])) if form[2] == "ms" else timedelta(seconds=int(form[1]))
    elif isinstance(wait, int | float) and not isinstance(wait, bool) and 0 <= wait <= longest:
        found = timedelta(seconds=wait)
    if isinstance(found, timedelta) and timedelta(0) <= found <= _LONGEST_WAIT:
        return found
    raise ValueError(
        f'wait={wait!r} is wrong; expected "200ms", "2s", seconds or a timedelta, up to {longest:g} s'
    )
