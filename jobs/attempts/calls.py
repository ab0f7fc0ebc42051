"""How handlers and callbacks are called: with what a signature asks for, on an event loop where one is `async def`."""

import contextvars
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from hookonce.jobs.attempts import driver_connection, failure_callbacks
from hookonce.jobs.attempts.failure_callbacks import FailedAttempt
from hookonce.jobs.attempts.time_limit import TimeLimit
from hookonce.jobs.failures.error_summary import whereabouts
from hookonce.jobs.handlers import Handler

if TYPE_CHECKING:
    from hookonce.jobs.attempts.coroutines import EventLoop
    from hookonce.jobs.order import EntitiesOf

log = logging.getLogger(__name__)

MakeEventLoop = Callable[[TimeLimit], "EventLoop"]
"""Makes the event loop that `async def` handlers run on, within a time limit."""
Call = Callable[[Any, Any], object]
"""Calls a handler with what it is given, and with what it writes on."""
FORKED = 70
"""The exit status of a child that a handler forked and let return: it must not touch what it shares with its parent."""


def handler_event_loop(alarm: TimeLimit) -> "EventLoop":
    """Make an event loop whose handlers await SQLAlchemy."""
    from hookonce.jobs.attempts.coroutines import EventLoop

    return EventLoop(alarm)


class Calls:
    """The calls of one executor, and its event loop, once there is one."""

    def __init__(self, make_loop: MakeEventLoop, entities_of: "EntitiesOf") -> None:
        """Make the event loop by `make_loop` when it is needed: what it calls gets connections of another kind each.

        `entities_of` returns the entities as they are in the transaction that a handler is given.
        """
        self._make_loop = make_loop
        self._entities_of = entities_of
        self.known: dict[str, Call] = {}
        """The calls that were made so far, by their handlers' names."""
        self._loop: EventLoop | None = None

    def of(self, handler: Handler, alarm: TimeLimit) -> Call:
        """Make the call of a handler, which is kept; modules that it needs are imported with the first."""
        self.known[handler.name] = call = self._made(handler, alarm)
        return call

    def _made(self, handler: Handler, alarm: TimeLimit) -> Call:
        call = self._plain(handler, alarm)
        if handler.awaits:
            from hookonce.jobs.capabilities import waits

            call = waits.watched(call, handler, self._entities_of)
        if handler.stale is not None:
            from hookonce.jobs import order

            call = order.guarded(call, handler, self._entities_of)
        return call

    def _plain(self, handler: Handler, alarm: TimeLimit) -> Call:
        if handler.is_long:
            return partial(_without_connection, handler.function)
        if handler.signature.is_async:
            return partial(self._event_loop(alarm).call, handler.function, handler.signature)
        if handler.signature.takes_driver:
            return partial(driver_connection.call, handler.function)
        if handler.signature.takes_session:
            from hookonce.jobs.attempts import orm_session

            return partial(orm_session.call, handler.function, handler.signature.session_class)
        return handler.function

    def call_back(self, failure: FailedAttempt, alarm: TimeLimit) -> None:
        """Call the callbacks of `on_failure`."""
        calls = [partial(each, failure) for each in failure_callbacks.callbacks]
        self.make(calls, alarm, failure_callbacks.TIMEOUT, "a callback of on_failure")

    def make(
        self, calls: Sequence[Callable[[], object]], alarm: TimeLimit, limit: timedelta, what: str
    ) -> None:
        """Make calls of the user's, each with its share of the time limit; errors are logged, and harm nothing."""
        for call in calls:
            home = os.getpid()
            try:
                with alarm.limit(limit / len(calls)):
                    try:
                        result = contextvars.copy_context().run(call)
                        if isinstance(result, Coroutine):
                            self._event_loop(alarm).run(result)
                    finally:
                        if os.getpid() != home:
                            os._exit(FORKED)
            except BaseException as error:  # noqa: BLE001  the user's code
                log.warning("%s failed: %s", what, whereabouts(error))

    def close(self) -> None:
        """Close the event loop."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None
        self.known.clear()

    def _event_loop(self, alarm: TimeLimit) -> "EventLoop":
        if self._loop is None:
            self._loop = self._make_loop(alarm)
        return self._loop


def _without_connection(function: Callable[[Any], object], event: object, _: object) -> object:
    return function(event)
