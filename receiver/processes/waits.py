"""How a request, or a lane of a group commit, waits: its thread stands still, or its event loop goes on with others.

What a request goes through is written once, as coroutines that wait by one of these. In a thread nothing is ever
suspended, so `run` brings such a coroutine to its end in one go.
"""

import asyncio
import select
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, ContextVar
from datetime import timedelta
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from hookonce.receiver.logs import limited

log = limited(__name__)

ASKING_THREADS = 64
"""For what waits for other machines: keys of senders, secrets handed out, limits that Redis counts."""
COMPUTING_THREADS = 1
"""For large bodies."""
_LOOK = 0.05
"""Seconds between two looks for deadlines that are over; shorter ones have a timer each."""
CHARGE_CLIENT: ContextVar[Callable[[float], None] | None] = ContextVar("charge_client", default=None)
"""Charges the client of the request at hand for seconds of work."""
P = ParamSpec("P")
R = TypeVar("R")


class Waits(Protocol):
    """A way to wait. A *bell* is what one request or lane waits for: rung by another, waited for once."""

    async def ask(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call what waits for other machines."""

    async def ask_server(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call what waits for our own PostgreSQL or Redis, whoever else keeps the threads of `ask` waiting."""

    async def compute(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call what keeps a processor busy for longer than others should wait."""

    async def readable(self, file: int, seconds: float | None = None) -> bool:
        """Wait until a socket has something to read; return whether it was in time."""

    async def writable(self, file: int) -> bool:
        """Wait until a socket takes something."""

    def bell(self) -> Any:  # noqa: ANN401  whatever this way of waiting has
        """Return a bell that nobody has rung."""

    def ring(self, bells: Sequence[Any]) -> None:
        """Ring bells of this way of waiting, from any thread."""

    async def rung(self, bell: Any, deadline: timedelta | None = None) -> bool:  # noqa: ANN401
        """Wait until a bell is rung; return whether it was in time."""

    def start(self, coroutine: Coroutine[Any, Any, None], name: str) -> Callable[[], None]:
        """Run a coroutine beside the caller; return what waits for its end, where that is possible."""


class InThread:
    """The way of a thread that has nothing else to do."""

    async def ask(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it."""
        return function(*args, **kwargs)

    compute = ask_server = ask

    async def readable(self, file: int, seconds: float | None = None) -> bool:
        """Poll the socket."""
        return _polled(file, select.POLLIN, seconds)

    async def writable(self, file: int) -> bool:
        """Poll the socket."""
        return _polled(file, select.POLLOUT, None)

    def bell(self) -> threading.Lock:
        """Return a lock that is taken: a third of the cost of an Event, and there is one who waits."""
        bell = threading.Lock()
        bell.acquire()
        return bell

    def ring(self, bells: Sequence[threading.Lock]) -> None:
        """Release the locks."""
        for bell in bells:
            bell.release()

    async def rung(self, bell: threading.Lock, deadline: timedelta | None = None) -> bool:
        """Wait for the lock."""
        return bell.acquire(timeout=-1 if deadline is None else deadline.total_seconds())

    def start(self, coroutine: Coroutine[Any, Any, None], name: str) -> Callable[[], None]:
        """Start a thread."""
        thread = threading.Thread(target=run, args=[coroutine], daemon=True, name=name)
        thread.start()
        return thread.join


IN_THREAD = InThread()


def loop_threads() -> tuple[Executor, Executor]:
    """Return the threads that `OnLoop` takes for what would hold a loop up; one after another may have them."""
    return (
        ThreadPoolExecutor(ASKING_THREADS, thread_name_prefix="hookonce-asking"),
        ThreadPoolExecutor(COMPUTING_THREADS, thread_name_prefix="hookonce-computing"),
    )


class Call:
    """A bell of an event loop that nobody awaits: when it is rung, or its time is over, a function is called once."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[bool], None]) -> None:
        self._function: Callable[[bool], None] | None = function

    def done(self) -> bool:
        """Whether it was rung."""
        return self._function is None

    def set_result(self, in_time: bool) -> None:  # noqa: FBT001  as a future
        """Call the function, and let go of it: it holds what holds the bell."""
        function, self._function = self._function, None
        if function is not None:
            function(in_time)


class OnLoop:
    """The way of the running event loop; `askers` and `computers` are its threads for what would hold it up."""

    def __init__(self, askers: Executor, computers: Executor) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._askers = askers
        self._computers = computers
        self._due: defaultdict[timedelta, deque[tuple[float, asyncio.Future[bool] | Call]]] = defaultdict(
            deque
        )
        self._is_looking = False
        self._started: set[asyncio.Task[None]] = set()

    async def ask(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Have a thread call it."""
        return await self._threaded(self._askers, partial(function, *args, **kwargs))

    async def ask_server(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Have a thread of its own call it: a server that hangs must not keep the process from ending."""
        asked: asyncio.Future[R] = self._loop.create_future()

        def tell(error: BaseException | None, answer: R | None) -> None:
            if asked.done():
                return
            if error is None:
                asked.set_result(answer)  # type: ignore[arg-type]  # an answer where there is no error
            else:
                asked.set_exception(error)

        def call() -> None:
            error, answer = None, None
            try:
                answer = function(*args, **kwargs)
            except Exception as raised:  # noqa: BLE001  it is the caller's
                error = raised
            with suppress(RuntimeError):  # the loop is closed, and nobody waits
                self._loop.call_soon_threadsafe(tell, error, answer)

        threading.Thread(target=call, daemon=True, name="hookonce-server").start()
        return await asked

    async def compute(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Have a thread call it."""
        return await self._threaded(self._computers, partial(function, *args, **kwargs))

    def _threaded(self, threads: Executor, call: Callable[[], R]) -> asyncio.Future[R]:
        """Have one of these threads call it; its work is charged to the client of the request at hand."""
        charge = CHARGE_CLIENT.get()
        if charge is None:
            return self._loop.run_in_executor(threads, call)

        def charged() -> R:
            began = time.thread_time()
            try:
                return call()
            finally:
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(charge, time.thread_time() - began)

        return self._loop.run_in_executor(threads, charged)

    async def readable(self, file: int, seconds: float | None = None) -> bool:
        """Have the loop look at the socket."""
        bell = self._loop.create_future()
        self._loop.add_reader(file, _end, [bell], True)  # noqa: FBT003
        try:
            return await self._in_time(bell, seconds)
        finally:
            self._loop.remove_reader(file)

    async def writable(self, file: int) -> bool:
        """Have the loop look at the socket."""
        bell: asyncio.Future[bool] = self._loop.create_future()
        self._loop.add_writer(file, _end, [bell], True)  # noqa: FBT003
        try:
            return await bell
        finally:
            self._loop.remove_writer(file)

    def bell(self) -> asyncio.Future[bool]:
        """Return a future."""
        return self._loop.create_future()

    def ring(self, bells: Sequence[asyncio.Future[bool] | Call]) -> None:
        """Wake the loop once for all of them; it may have been closed meanwhile, and nobody waits."""
        try:
            if threading.get_ident() == self._thread:
                _end(bells, True)  # noqa: FBT003
            else:
                self._loop.call_soon_threadsafe(_end, bells, True)  # noqa: FBT003
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    async def rung(self, bell: asyncio.Future[bool], deadline: timedelta | None = None) -> bool:
        """Await the future."""
        if deadline is None:
            return await bell
        seconds = deadline.total_seconds()
        if seconds < _LOOK:
            return await self._in_time(bell, seconds)
        self._watch(bell, deadline)
        return await bell

    def call(self, function: Callable[[bool], None], deadline: timedelta) -> Call:
        """Return a bell that calls a function with whether it was rung in time."""
        bell = Call(function)
        self._watch(bell, deadline)
        return bell

    def _watch(self, bell: asyncio.Future[bool] | Call, deadline: timedelta) -> None:
        self._due[deadline].append((self._loop.time() + deadline.total_seconds(), bell))
        if not self._is_looking:
            self._is_looking = True
            self._loop.call_later(_LOOK, self._look)

    def start(self, coroutine: Coroutine[Any, Any, None], name: str) -> Callable[[], None]:
        """Start a task, which is of no request; nobody can wait for its end without holding the loop up."""
        task = self._loop.create_task(coroutine, name=name, context=Context())
        self._started.add(task)
        task.add_done_callback(self._started.discard)
        return lambda: None

    async def _in_time(self, bell: asyncio.Future[bool], seconds: float | None) -> bool:
        if seconds is None:
            return await bell
        timer = self._loop.call_later(seconds, _end, [bell], False)  # noqa: FBT003
        try:
            return await bell
        finally:
            timer.cancel()

    def _look(self) -> None:
        """End those whose deadline is over: one timer for all, since nearly none is ever needed."""
        now, self._is_looking = self._loop.time(), False
        for due in self._due.values():
            while due and (due[0][1].done() or due[0][0] <= now):
                _end([due.popleft()[1]], False)  # noqa: FBT003
            self._is_looking = self._is_looking or bool(due)
        if self._is_looking:
            self._loop.call_later(_LOOK, self._look)


def _end(bells: Sequence[asyncio.Future[bool] | Call], in_time: bool) -> None:  # noqa: FBT001
    for bell in bells:
        if not bell.done():
            try:
                bell.set_result(in_time)
            except Exception as error:  # a `Call`'s: it must not keep the other bells from being rung
                log.exception("what waited for a bell failed: %s", type(error).__name__)


def _polled(file: int, event: int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(file, event)
    return bool(poll.poll(None if seconds is None else seconds * 1000))


def run(coroutine: Coroutine[Any, Any, R]) -> R:
    """Bring a coroutine that waits `InThread` to its end, and return what it returns. Raises what it raises."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine waits for an event loop in a thread that has none")
