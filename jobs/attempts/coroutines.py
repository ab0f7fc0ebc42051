"""Runs `async def` handlers: on an event loop of the executor's own, in the transaction that `done` is committed in.

An `AsyncConnection` of SQLAlchemy is a thin shell: it runs the blocking connection in a greenlet, and expects its
driver to await. Ours is psycopg's blocking connection, all of whose waiting goes through one method; as long as the
handler has it, that method awaits the socket instead. So it is the same connection, transaction and guard as for any
handler, and the loop goes on while a statement runs. Imported only for such handlers (docs/decisions/0016).

A handler that takes psycopg's `AsyncConnection` gets the same connection with methods that are awaited: each is called
in a greenlet, too.

The loop stays from run to run, since clients of HTTP and the like belong to the loop they were made in. A handler's
tasks end with it, and its context variables are its own.
"""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, ClassVar, Self

import psycopg
from psycopg import waiting
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import MissingGreenlet
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.util import await_only, greenlet_spawn

from hookonce.jobs.attempts.driver_connection import DriverConnection
from hookonce.jobs.attempts.driver_cursors import GivenCursor
from hookonce.jobs.attempts.orm_session import told_of_the_end
from hookonce.jobs.attempts.time_limit import TimeLimit, TimeUp
from hookonce.jobs.handler_signature import Signature
from hookonce.receiver.ledger.database import engines

CLEANUP_TIMEOUT = 1.0
"""Seconds that tasks which were cut off have for their `finally`."""
LEFT_BEHIND = "the handler returned while tasks that it had started were still going on; await them: "
BUSY = "another task's statement is under way on this connection; await it first"

_INTERVAL = 0.1  # seconds: how often psycopg looks whether it was interrupted
_TURNS = 3  # of the loop, in which tasks that were cancelled or are about to end do so


class EventLoop:
    """One event loop, opened when needed, for one thread."""

    def __init__(self, alarm: TimeLimit) -> None:
        self._alarm = alarm
        self._loop: asyncio.AbstractEventLoop | None = None

    def call(
        self,
        function: Callable[..., Awaitable[object]],
        signature: Signature,
        event: object,
        connection: Connection,
    ) -> object:
        """Call an `async def` handler with what its signature asks for, and run it."""
        return self.run(_call(function, signature, event, connection))

    def run(self, coroutine: Coroutine[Any, Any, object]) -> object:
        """Run a coroutine and end what it leaves behind.

        At the time limit it is cancelled first, like by `asyncio.timeout`; then, like any handler, cut off. Raises
        `TimeUp`, and `RuntimeError` where it returns while tasks of its own go on.
        """
        loop = self._loop = self._loop or asyncio.new_event_loop()
        main = loop.create_task(whole(coroutine), context=contextvars.copy_context())
        is_late = threading.Event()

        def cancel() -> None:
            is_late.set()
            loop.call_soon_threadsafe(main.cancel)

        try:
            with self._alarm.warning(cancel):
                result = _completed(loop, main)
        except BaseException as error:
            if is_late.is_set() and not isinstance(error, TimeUp):
                raise self._alarm.time_up() from error
            raise
        finally:
            if asyncio.all_tasks(loop):  # they take no end, or were cut off in the loop's own code
                self.close()
        if is_late.is_set():
            raise self._alarm.time_up()
        return result

    def close(self) -> None:
        """Close the loop; tasks that are left never go on."""
        if self._loop is not None:
            for task in asyncio.all_tasks(self._loop):
                task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  asyncio.gather does so
            self._loop.close()
            self._loop = None


def _completed(loop: asyncio.AbstractEventLoop, main: asyncio.Task[object]) -> object:
    """Run a task to its end, though what a handler before has left on the loop may stop that."""
    while True:
        try:
            return loop.run_until_complete(main)
        except RuntimeError:
            if main.done() or loop.is_closed():
                raise


async def whole(coroutine: Coroutine[Any, Any, object]) -> object:
    """Await the coroutine; its tasks end with it."""
    try:
        result = await coroutine
    except GeneratorExit:  # thrown away with its loop: nothing can be awaited any more
        raise
    except BaseException:
        await _cancel(await _others())
        raise
    if left := await _others():
        names = sorted(_name(task) for task in left)
        await _cancel(left)
        raise RuntimeError(LEFT_BEHIND + ", ".join(names))
    return result


async def _others() -> set[asyncio.Task[Any]]:
    """Return the tasks besides this one that do not end by themselves in a moment."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}


async def _cancel(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=CLEANUP_TIMEOUT)


def _name(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", task.get_name())


async def _call(
    function: Callable[..., Awaitable[object]], signature: Signature, event: object, connection: Connection
) -> object:
    with _awaiting(connection):
        if signature.takes_driver:
            return await function(event, connection.connection.driver_connection)
        given = AsyncConnection(_Engine(connection.engine), connection)
        if not signature.takes_session:
            return await function(event, given)
        async with _session_in(given, signature.session_class) as session:
            return await function(event, session)


@asynccontextmanager
async def _session_in(given: AsyncConnection, session_class: type | None) -> AsyncIterator[AsyncSession]:
    """Give a session as `orm_session` does; what it has loaded stays so at a commit, as it can't be loaded unasked."""
    kind = session_class or AsyncSession
    made = kind(bind=given, join_transaction_mode="create_savepoint", expire_on_commit=False)
    async with made as session:
        yield session
        with told_of_the_end():
            await session.commit()


class _Engine(AsyncEngine):
    """An engine whose driver blocks, unless it is `_awaiting`."""

    __slots__ = ()

    def __init__(self, sync_engine: Engine) -> None:
        self.sync_engine = self._assign_proxied(sync_engine)


@contextmanager
def _awaiting(connection: Connection) -> Iterator[None]:
    """Have psycopg's connection await where it would block, in the block."""
    driver = engines.raw(connection)
    lock, wait = driver.lock, _Wait(driver)
    driver.__dict__.update(wait=wait, lock=_Lock())
    driver.cursor_factory = _Cursor  # put back with what else the guard does
    connection.__dict__["guard"].as_given = AsyncDriverConnection
    try:
        yield
    finally:
        driver.lock = lock
        if driver.__dict__.get("wait") is wait:  # else the guard's, since a rollback
            del driver.__dict__["wait"]


class _Cursor(GivenCursor):
    """A cursor whose rows are here already when SQLAlchemy asks to let go of the server's."""

    async def _async_soft_close(self) -> None:
        pass


class _Wait:
    """Stands for `Connection.wait`; blocks as ever where no greenlet of SQLAlchemy's calls it."""

    def __init__(self, driver: psycopg.Connection[Any]) -> None:
        self._driver = driver

    def __call__(self, generator: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401  psycopg's signature
        with contextlib.suppress(MissingGreenlet):  # nothing was begun then
            return await_only(self._finish(generator))
        return type(self._driver).wait(self._driver, generator, *arguments, **options)

    async def _finish(self, generator: Any) -> Any:  # noqa: ANN401
        driver = self._driver
        try:
            return await waiting.wait_async(generator, driver.pgconn.socket, _INTERVAL)
        except asyncio.CancelledError:
            with contextlib.suppress(psycopg.Error, TimeoutError):  # the statement says that it was cancelled
                driver.cancel_safe(timeout=CLEANUP_TIMEOUT)
                rest = waiting.wait_async(generator, driver.pgconn.socket, _INTERVAL)
                await asyncio.wait_for(rest, CLEANUP_TIMEOUT)
            raise


class _Lock:
    """Stands for `Connection.lock`: one task at a time, the others await their turn."""

    def __init__(self) -> None:
        self._free = asyncio.Event()
        self._free.set()

    def __enter__(self) -> None:
        while not self._free.is_set():
            try:
                await_only(self._free.wait())
            except MissingGreenlet:
                raise RuntimeError(BUSY) from None
        self._free.clear()

    def __exit__(self, *_: object) -> None:
        self._free.set()


_END = object()


class _Awaited:
    """An object that blocks, and whose methods of some names are awaited."""

    _awaited: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, blocking: Any) -> None:  # noqa: ANN401  whichever of psycopg's
        object.__setattr__(self, "_blocking", blocking)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever psycopg has there
        found = getattr(self._blocking, name)
        return partial(greenlet_spawn, found) if name in self._awaited else found

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._blocking, name, value)


class _Pipeline(_Awaited):
    _awaited = frozenset({"sync"})


class _Copy(_Awaited):
    _awaited = frozenset({"read", "read_row", "write", "write_row", "finish"})

    def __aiter__(self) -> AsyncIterator[Any]:
        return _each(self._blocking)

    def rows(self) -> AsyncIterator[Any]:
        """Give the rows of a COPY TO."""
        return _each(self._blocking.rows())


class AsyncCursor(_Awaited):
    """A cursor as psycopg's `AsyncCursor`."""

    _awaited = frozenset({"executemany", "fetchone", "fetchmany", "fetchall", "scroll", "close"})

    async def execute(self, *args: Any, **options: Any) -> Self:  # noqa: ANN401  psycopg's
        """Execute a statement."""
        await greenlet_spawn(self._blocking.execute, *args, **options)
        return self

    def stream(self, *args: Any, **options: Any) -> AsyncIterator[Any]:  # noqa: ANN401  psycopg's
        """Give the rows of a statement as they come."""
        return _each(self._blocking.stream(*args, **options))

    @asynccontextmanager
    async def copy(self, *args: Any, **options: Any) -> AsyncIterator[_Copy]:  # noqa: ANN401  psycopg's
        """Begin a COPY."""
        async with _inside(self._blocking.copy(*args, **options), _Copy) as copy:
            yield copy

    def __aiter__(self) -> AsyncIterator[Any]:
        return _each(self._blocking)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncDriverConnection(_Awaited):
    """A connection as psycopg's `AsyncConnection`, inside the transaction of an attempt."""

    _awaited = frozenset({"commit", "rollback", "close"})
    _blocking: DriverConnection

    async def execute(self, *args: Any, **options: Any) -> AsyncCursor:  # noqa: ANN401  psycopg's
        """Execute a statement, and return a cursor with its result."""
        return AsyncCursor(await greenlet_spawn(self._blocking.execute, *args, **options))

    def cursor(self, *args: Any, **options: Any) -> AsyncCursor:  # noqa: ANN401  psycopg's
        """Return a cursor."""
        return AsyncCursor(self._blocking.cursor(*args, **options))

    @asynccontextmanager
    async def transaction(self, *args: Any, **options: Any) -> AsyncIterator[Any]:  # noqa: ANN401  psycopg's
        """Put what follows in a savepoint."""
        async with _inside(self._blocking.transaction(*args, **options)) as savepoint:
            yield savepoint

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[_Pipeline]:
        """Send what follows without waiting for each result."""
        async with _inside(self._blocking.pipeline(), _Pipeline) as pipeline:
            yield pipeline


@asynccontextmanager
async def _inside(
    block: AbstractContextManager[Any], made: Callable[[Any], Any] = lambda given: given
) -> AsyncIterator[Any]:
    """Enter a block that blocks, and leave it as any."""
    entered = await greenlet_spawn(block.__enter__)
    try:
        yield made(entered)
    except BaseException as error:
        if not await greenlet_spawn(block.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await greenlet_spawn(block.__exit__, None, None, None)


async def _each(blocking: Iterable[Any]) -> AsyncIterator[Any]:
    rows = iter(blocking)
    while (row := await greenlet_spawn(next, rows, _END)) is not _END:
        yield row
