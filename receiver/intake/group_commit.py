"""Group commit: the concurrent requests of a process share one round trip to each server.

A lane is a background thread (a greenlet under gevent) with its own connection. It takes everything
that waits, commits it as one batch, and takes what has come meanwhile. So batches form while the previous one
commits, and nobody waits for a batch to fill. One lane makes the largest batches; another is called only
when that one is stuck. Each request waits for its own answer, with its own deadline,
so a hung server holds a lane and never a request.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Given_contra = TypeVar("Given_contra", contravariant=True)
Got_co = TypeVar("Got_co", covariant=True)


STALLED_AFTER = timedelta(milliseconds=30)
"""How long a batch may be under way before the next request calls another lane."""


MAX_BATCH = 256
"""Items committed together at most. So many come together only where commits take long: on a disk that takes seconds
for each, all who wait must be taken within their deadline; and their bodies must fit into memory three times."""


class DeadlineExceeded(Exception):  # noqa: N818  the caller turns it into its own error
    """No answer within the deadline; what was asked may still happen."""


class BatchCommitter(Protocol[Given_contra, Got_co]):
    """Commits batches on connections of its own: one answer (or exception) per item, in order."""

    def __call__(self, items: Sequence[Given_contra], /) -> Sequence[Got_co | Exception]: ...  # noqa: D102

    def close(self) -> None: ...  # noqa: D102


class _PendingItem(Generic[Item, Answer]):
    """One item on its way: who waits for it, and what came of it."""

    __slots__ = ("_pending", "abandoned", "answer", "error", "item")

    def __init__(self, item: Item) -> None:
        self.item = item
        self._pending = threading.Lock()  # a third of the cost of an Event, and there is one waiter
        self._pending.acquire()
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.abandoned = False

    def end(self) -> None:
        """Wake the request; call once."""
        self._pending.release()

    def wait(self, deadline: timedelta) -> bool:
        """Wait for the end; return whether it came in time. Call once."""
        return self._pending.acquire(timeout=deadline.total_seconds())


class GroupCommit(Generic[Item, Answer]):
    """Runs `commit` on batches of up to `limit` items in up to `lanes` lanes at once.

    `gather` is called before a batch is taken: it may let requests that are ready to run come along.
    Lanes start with the first item, so after any fork, and end with `close`.
    """

    def __init__(
        self,
        open_lane: Callable[[], BatchCommitter[Item, Answer]],
        *,
        lanes: int = 2,
        limit: int = MAX_BATCH,
        gather: Callable[[], None] = lambda: None,
    ) -> None:
        self._open_lane = open_lane
        self._max_lanes = lanes
        self._limit = limit
        self._gather = gather
        self._waiting: deque[_PendingItem[Item, Answer]] = deque()
        self._called = threading.Condition(threading.Lock())
        self._threads: list[threading.Thread] = []
        self._busy = 0  # lanes at work, or called and on their way
        self._taken_at = 0.0
        self._closing = False

    def submit(self, item: Item, deadline: timedelta) -> Answer:
        """Commit the item with whatever else waits, and return its answer.

        Raises `DeadlineExceeded` after `deadline`, or what the batch raised for this item.
        """
        pending: _PendingItem[Item, Answer] = _PendingItem(item)
        with self._called:
            self._waiting.append(pending)
            if not self._busy or time.monotonic() - self._taken_at > STALLED_AFTER.total_seconds():
                self._start_lane()
        if not pending.wait(deadline):
            self._abandon(pending)
            raise DeadlineExceeded
        if pending.error is not None:
            raise pending.error
        return pending.answer  # type: ignore[return-value]  # set before `end`

    def close(self) -> None:
        """Let the lanes finish what they have taken, close them, and wait for them."""
        with self._called:
            self._closing = True
            self._called.notify_all()
        for thread in self._threads:
            thread.join()

    @property
    def waiting(self) -> int:
        """How many items no lane has taken yet."""
        return len(self._waiting)

    def _start_lane(self) -> None:
        """Wake an idle lane, or open another if there may be one."""
        if self._busy == self._max_lanes:
            return
        if self._busy < len(self._threads):
            self._called.notify()
        else:
            self._threads.append(threading.Thread(target=self._run_lane, daemon=True, name="hookonce-lane"))
            self._threads[-1].start()
        self._busy += 1
        self._taken_at = time.monotonic()

    def _abandon(self, pending: _PendingItem[Item, Answer]) -> None:
        """Let go of a request that gave up, and of its body if no lane has taken it yet."""
        with self._called:
            pending.abandoned = True
            while self._waiting and self._waiting[0].abandoned:
                self._waiting.popleft()

    def _run_lane(self) -> None:
        commit: BatchCommitter[Item, Answer] | None = None
        while batch := self._take():
            answers: Sequence[Answer | Exception]
            try:
                commit = commit or self._open_lane()
                answers = commit([pending.item for pending in batch])
            except Exception as error:  # noqa: BLE001  whatever it was, each waiting request must hear of it
                answers = [error] * len(batch)
            for pending, answer in zip(batch, answers, strict=True):
                if isinstance(answer, Exception):
                    pending.error = answer
                else:
                    pending.answer = answer
                pending.end()
        if commit is not None:
            commit.close()

    def _take(self) -> list[_PendingItem[Item, Answer]]:
        """Wait for work and take up to `limit` tickets whose requests still wait; none when closing."""
        while self._await_work():
            self._gather()
            with self._called:
                batch: list[_PendingItem[Item, Answer]] = []
                while self._waiting and len(batch) < self._limit:
                    pending = self._waiting.popleft()
                    if not pending.abandoned:
                        batch.append(pending)
                if batch:
                    return batch
        return []

    def _await_work(self) -> bool:
        """Wait until something waits; False when closing and nothing does."""
        with self._called:
            while not self._waiting and not self._closing:
                self._busy -= 1
                self._called.wait()
            self._taken_at = time.monotonic()
            return bool(self._waiting)
