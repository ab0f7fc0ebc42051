"""Runs `async def` handlers of Django: by Django's own bridge, on an event loop in a thread beside the worker's.

What the asynchronous ORM does in the database is done in the worker's thread (`thread_sensitive` of asgiref), on the
connection whose transaction the run's `done` is committed in. As in a request under WSGI, each call has its own loop.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import async_to_sync

from hookonce.jobs.attempts.coroutines import EventLoop, whole
from hookonce.jobs.handler_signature import Signature


class DjangoEventLoop(EventLoop):
    """Calls `async def` handlers with Django's connection; what else is awaited runs on a loop as ever."""

    def call(
        self,
        function: Callable[..., Awaitable[object]],
        signature: Signature,  # noqa: ARG002  there are no sessions
        event: object,
        connection: Any,  # noqa: ANN401  Django's
    ) -> object:
        """Call a handler and await it; at the time limit it is cancelled, and `TimeUp` raised."""
        is_late = threading.Event()
        under_way: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

        async def awaited() -> object:
            if (task := asyncio.current_task()) is not None:
                under_way.append((asyncio.get_running_loop(), task))
            return await whole(_awaited(function, event, connection))

        def cancel() -> None:
            is_late.set()
            for loop, task in under_way:
                loop.call_soon_threadsafe(task.cancel)

        try:
            with self._alarm.warning(cancel):
                result = async_to_sync(awaited)()
        except (Exception, asyncio.CancelledError) as error:
            if is_late.is_set():
                raise self._alarm.time_up() from error
            raise
        if is_late.is_set():
            raise self._alarm.time_up()
        return result


async def _awaited(function: Callable[..., Awaitable[object]], event: object, connection: object) -> object:
    return await function(event, connection)
