"""How a request waits: its thread stands still, or its event loop goes on with others.

What a request goes through is written once, as coroutines that wait by one of these. In a thread nothing is ever
suspended, so `run` brings such a coroutine to its end in one go.
"""

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor
from datetime import timedelta
from typing import Any, ParamSpec, Protocol, TypeVar

_LOOK = 0.05
"""Seconds between two looks for deadlines that are over."""
P = ParamSpec("P")
R = TypeVar("R")


class Waits(Protocol):
    """A way to wait. A *bell* is what one request waits for: rung by another thread, waited for once."""

    async def ask(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call what waits for other machines."""

    async def compute(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call what keeps a processor busy for longer than others should wait."""

    def bell(self) -> Any:  # noqa: ANN401  whatever this way of waiting has
        """Return a bell that nobody has rung."""

    def ring(self, bells: Sequence[Any]) -> None:
        """Ring bells of this way of waiting, from any thread."""

    async def rung(self, bell: Any, deadline: timedelta) -> bool:  # noqa: ANN401
        """Wait until a bell is rung; return whether it was in time."""


class InThread:
    """The way of a thread that has nothing else to do."""

    async def ask(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it."""
        return function(*args, **kwargs)

    compute = ask

    def bell(self) -> threading.Lock:
        """Return a lock that is taken: a third of the cost of an Event, and there is one who waits."""
        bell = threading.Lock()
        bell.acquire()
        return bell

    def ring(self, bells: Sequence[threading.Lock]) -> None:
        """Release the locks."""
        for bell in bells:
            bell.release()

    async def rung(self, bell: threading.Lock, deadline: timedelta) -> bool:
        """Wait for the lock."""
        return bell.acquire(timeout=deadline.total_seconds())


IN_THREAD = InThread()


class OnLoop:
    """The way of the running event loop; `askers` and `computers` are its threads for what would hold it up."""

    def __init__(self, askers: Executor, computers: Executor) -> None:
        self._loop = asyncio.get_running_loop()
        self._askers = askers
        self._computers = computers
        self._due: defaultdict[timedelta, deque[tuple[float, asyncio.Future[bool]]]] = defaultdict(deque)
        self._is_looking = False

    async def ask(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Have a thread call it."""
        return await self._loop.run_in_executor(self._askers, lambda: function(*args, **kwargs))

    async def compute(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Have a thread call it."""
        return await self._loop.run_in_executor(self._computers, lambda: function(*args, **kwargs))

    def bell(self) -> asyncio.Future[bool]:
        """Return a future."""
        return self._loop.create_future()

    def ring(self, bells: Sequence[asyncio.Future[bool]]) -> None:
        """Wake the loop once for all of them; it may have been closed meanwhile, and nobody waits."""
        try:
            self._loop.call_soon_threadsafe(_end, bells, True)  # noqa: FBT003
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    async def rung(self, bell: asyncio.Future[bool], deadline: timedelta) -> bool:
        """Await the future."""
        self._due[deadline].append((self._loop.time() + deadline.total_seconds(), bell))
        if not self._is_looking:
            self._is_looking = True
            self._loop.call_later(_LOOK, self._look)
        return await bell

    def _look(self) -> None:
        """End those whose deadline is over: one timer for all, since nearly none is ever needed."""
        now, self._is_looking = self._loop.time(), False
        for due in self._due.values():
            while due and (due[0][1].done() or due[0][0] <= now):
                _end([due.popleft()[1]], False)  # noqa: FBT003
            self._is_looking = self._is_looking or bool(due)
        if self._is_looking:
            self._loop.call_later(_LOOK, self._look)


def _end(bells: Sequence[asyncio.Future[bool]], in_time: bool) -> None:  # noqa: FBT001
    for bell in bells:
        if not bell.done():
            bell.set_result(in_time)


def run(coroutine: Coroutine[Any, Any, R]) -> R:
    """Bring a coroutine that waits `InThread` to its end, and return what it returns. Raises what it raises."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine waits for an event loop in a thread that has none")
