"""`@on_batch`: has a function take many events at once."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from hookonce.jobs import handlers
from hookonce.jobs.handlers import DEFAULT_BACKOFF, HandlerError
from hookonce.jobs.registration import handler_of, name_of, require_names
from hookonce.receiver.config.commands import COMMAND
from hookonce.receiver.ledger.runs.batch_size import BatchSize

Function = TypeVar("Function", bound=Callable[[Any, Any], object])

LONGEST_WAIT = timedelta(minutes=1)
_UNFIT = {
    "rate": "a rate counts runs; say how many at once by most=, how often by wait=",
    "concurrency": "it counts runs; a worker takes one batch of a handler at a time",
    "per": "a batch may hold events of any account and source",
    "tx": "a batch is one transaction",
}
_WAIT = re.compile(r"(\d{1,5})(ms|s)", re.ASCII)


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
    breaker: int | None = None,
    **unfit: object,
) -> Callable[[Function], Function]:
    """Have a function take many events of a source (or a provider) at once, in one transaction.

    It takes `(events, tx)` or `(events, session)`, as handlers of `@on` do one event; each event keeps its own run. It
    gets up to `most` that are due, in the order of their due times; if they are fewer, the first of them waits for
    others for `wait` ("200ms", "2s", seconds or a timedelta; a minute at most). `timeout` is for the whole batch.

    If it raises, what it wrote is rolled back, nobody is charged, and both halves are tried by themselves; so on until
    one event stands alone, which is treated as any: an attempt is used up, there is a pause, the last of them ends in
    a dead run. It may name events by `GiveUp(…, event=…)` and `RetryLater(…, event=…)`. The other parameters are those
    of `@on`. Raises `HandlerError` for values that make no sense.
    """
    require_names("on_batch", place, pattern)

    def register(function: Function) -> Function:
        called = name_of(function, name)
        _require_fit(called, place, unfit)
        handler = handler_of(
            called, place, pattern, function, attempts, backoff, timeout, isolation, breaker, given="events"
        )
        handlers.registry.add(replace(handler, batch=_size(called, most, wait)))
        return function

    return register


def _require_fit(called: str, place: str, unfit: dict[str, object]) -> None:
    for option in unfit:
        why = _UNFIT.get(option, "there is no such parameter")
        raise HandlerError(f"handler '{called}': {option}= does not go with @on_batch: {why}")
    if place == COMMAND or place.startswith("commands."):
        raise HandlerError(
            f"handler '{called}': a command is done by itself, with @on; its client waits for it"
        )


def _size(called: str, most: int, wait: str | float | timedelta) -> BatchSize:
    try:
        return BatchSize(most, _span(wait))
    except ValueError as error:
        raise HandlerError(f"handler '{called}': {error}") from None


def _span(wait: str | float | timedelta) -> timedelta:
    """Return how long to wait. Raises ValueError."""
    found: object = wait
    if isinstance(wait, str) and (form := _WAIT.fullmatch(wait)):
        found = timedelta(milliseconds=int(form[1])) if form[2] == "ms" else timedelta(seconds=int(form[1]))
    elif (
        isinstance(wait, int | float)
        and not isinstance(wait, bool)
        and 0 <= wait <= LONGEST_WAIT.total_seconds()
    ):
        found = timedelta(seconds=wait)
    if isinstance(found, timedelta) and timedelta(0) <= found <= LONGEST_WAIT:
        return found
    longest = LONGEST_WAIT.total_seconds()
    raise ValueError(
        f'wait={wait!r} is wrong; expected "200ms", "2s", seconds or a timedelta, up to {longest:g} s'
    )
