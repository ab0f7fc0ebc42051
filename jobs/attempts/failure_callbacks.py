"""Callbacks that hear of failed attempts: an error tracker, a chat, a log of your own.

A callback is called in the worker, after the attempt's end was committed, and has its share of `TIMEOUT`. What it does
or raises changes nothing about the run. A failure that no exception tells of, since the whole process died, is not
among these: the next worker finds that one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from hookonce.receiver.ledger.runs.claimed import ClaimedRun

TIMEOUT = timedelta(seconds=5)
"""For all callbacks, which share it: the next run may have been started, and its lease outlasts it by 15 s."""


@dataclass(frozen=True)
class FailedEvent:
    """The event of a failed attempt, as far as everybody may know it: without body and headers."""

    id: int
    event_id: str
    source: str
    provider: str
    type: str
    account: str | None
    received_at: datetime


@dataclass(frozen=True)
class FailedAttempt:
    """A failed attempt as callbacks are told of it: `error` is the exception itself, with its traceback and causes.

    `is_dead` says that no further attempt follows by itself.
    """

    event: FailedEvent
    handler: str
    attempt: int
    is_dead: bool
    error: BaseException = field(repr=False)


FailureCallback = Callable[[FailedAttempt], object]
Callback = TypeVar("Callback", bound=FailureCallback)

callbacks: list[FailureCallback] = []
"""The process's own, in the order they were registered."""


def on_failure(callback: Callback) -> Callback:
    """Have `callback(failure)` called after each failed attempt was recorded; usable as a decorator.

    `failure` is a `FailedAttempt`. `RetryLater` is no failure. Registering a callback again does nothing.
    """
    if not callable(callback):
        raise TypeError(f"{callback!r} can't be called; expected a function that takes a failed attempt")
    if callback not in callbacks:
        callbacks.append(callback)
    return callback


def failure_of(run: ClaimedRun, error: BaseException, *, is_dead: bool) -> FailedAttempt:
    """Tell a callback of a failed attempt."""
    known = run.event
    event = FailedEvent(
        known.id, known.event_id, known.source, known.provider, known.type, known.account, known.received_at
    )
    return FailedAttempt(event, run.handler, run.attempt, is_dead, error)
