"""Group commit: the concurrent requests of a process share one round trip to each server.

A lane is a background thread with its own connection. It takes everything that waits, commits it as one batch, and
takes what has come meanwhile. So batches form while the previous one commits. Clients that were just answered are back
with their next request in a moment: as many as were under way are waited for, `GATHER` at most, and whoever is alone
waits for nobody. One lane makes the largest batches; another is called only when that one is stuck. Each request waits
for its own answer, with its own deadline, so a hung server holds a lane and never a request.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

from hookonce.receiver.intake.waits import IN_THREAD, Waits, run
from hookonce.receiver.logs import limited

log = limited(__name__)

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Given_contra = TypeVar("Given_contra", contravariant=True)
Got_co = TypeVar("Got_co", covariant=True)


STALLED_AFTER = timedelta(milliseconds=30)
"""How long a batch may be under way before the next request calls another lane."""


GATHER = timedelta(milliseconds=1)
"""How long a lane that has an item waits for as many as were under way when the batch before it ended."""
RECENT = timedelta(milliseconds=5)
"""For so long after a batch; then nobody is waited for."""
MAX_BATCH = 256
"""Items committed together at most. So many come together only where commits take long: on a disk that takes seconds
for each, all who wait must be taken within their deadline; and their bodies must fit into memory three times."""


MAX_WEIGHT = 1000
"""What the items of a batch weigh together at most. One that weighs more has a lane to itself, and others are called
for whoever else comes."""


_CALLED = 0
"""In place of a thread: a lane that was called and has not begun."""
_LONG_AGO = float("-inf")


class DeadlineExceeded(Exception):  # noqa: N818  the caller turns it into its own error
    """No answer within the deadline; what was asked may still happen."""


class BatchCommitter(Protocol[Given_contra, Got_co]):
    """Commits batches on connections of its own: one answer (or exception) per item, in order.

    `rest` does what a batch has left to do that no answer waits for; it is called when no other batch follows at once.
    """

    def __call__(self, items: Sequence[Given_contra], /) -> Sequence[Got_co | Exception]: ...  # noqa: D102

    def rest(self) -> None: ...  # noqa: D102

    def close(self) -> None: ...  # noqa: D102


class _PendingItem(Generic[Item, Answer]):
    """One item on its way: who waits for it, and what came of it."""

    __slots__ = ("abandoned", "answer", "bell", "error", "item", "waits")

    def __init__(self, item: Item, waits: Waits) -> None:
        self.item = item
        self.waits = waits
        self.bell = waits.bell()
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.abandoned = False


class GroupCommit(Generic[Item, Answer]):
    """Runs `commit` on batches of up to `limit` items in up to `lanes` lanes at once.

    After each batch up to `gather` is waited for who was under way beside it. `weigh` says how much work an item is.
    Lanes start with the first item, so after any fork, and end with `close`.
    """

    def __init__(
        self,
        open_lane: Callable[[], BatchCommitter[Item, Answer]],
        *,
        lanes: int = 2,
        limit: int = MAX_BATCH,
        gather: timedelta = GATHER,
        weigh: Callable[[Item], int] = lambda _item: 1,
    ) -> None:
        self._open_lane = open_lane
        self._max_lanes = lanes
        self._limit = limit
        self._gather = gather.total_seconds()
        self._weigh = weigh
        self._expected = 1  # how many have to wait before an idle lane is woken
        self._waiting: deque[_PendingItem[Item, Answer]] = deque()
        self._lock = threading.Lock()
        self._called = threading.Condition(self._lock)  # idle lanes wait for it
        self._gathered = threading.Condition(self._lock)  # and those that gather for this
        self._threads: list[threading.Thread] = []
        self._busy = 0  # lanes at work, or called and on their way
        self._calls = 0  # lanes that are on their way
        self._lingering = 0  # lanes that may be called before they rest
        self._gathering = 0  # lanes that wait for who was under way; they are at work too
        self._taken_at: dict[int, float] = {}  # when each lane at work began, by its thread; see `_CALLED`
        self._ended_at = 0.0
        self._closing = False

    def submit(self, item: Item, deadline: timedelta) -> Answer:
        """Commit the item with whatever else waits, and return its answer; the calling thread waits.

        Raises as `committed` does.
        """
        return run(self.committed(item, deadline, IN_THREAD))

    async def committed(self, item: Item, deadline: timedelta, waits: Waits) -> Answer:
        """Commit the item with whatever else waits, and return its answer.

        Raises `DeadlineExceeded` after `deadline`, or what the batch raised for this item.
        """
        pending: _PendingItem[Item, Answer] = _PendingItem(item, waits)
        self._enter(pending)
        in_time = False
        try:
            in_time = await waits.rung(pending.bell, deadline)
        finally:
            if not in_time:
                self._abandon(pending)
        if not in_time:
            raise DeadlineExceeded
        if pending.error is not None:
            raise pending.error
        return pending.answer  # type: ignore[return-value]  # set before the bell is rung

    def close(self) -> None:
        """Let the lanes finish what they have taken, close them, and wait for them."""
        with self._lock:
            self._closing = True
            self._called.notify_all()
            self._gathered.notify_all()
        for thread in self._threads:
            thread.join()

    @property
    def waiting(self) -> int:
        """How many items no lane has taken yet."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether no lane is at work, nor has anything left to do."""
        return not self._busy and not self._lingering

    @property
    def is_stalled(self) -> bool:
        """Whether every batch under way has taken so long that another lane is called."""
        latest = max(self._taken_at.values(), default=_LONG_AGO)
        return time.monotonic() - latest > STALLED_AFTER.total_seconds()

    def _enter(self, pending: _PendingItem[Item, Answer]) -> None:
        with self._lock:
            self._waiting.append(pending)
            if self._gathering:
                if len(self._waiting) >= self._expected:
                    self._gathered.notify()
            elif not self._busy or self.is_stalled:
                self._start_lane()

    def _start_lane(self) -> None:
        """Wake an idle lane, or open another if there may be one."""
        if self._busy == self._max_lanes:
            return
        if self._busy < len(self._threads):
            self._calls += 1
            self._called.notify()
        else:
            self._threads.append(threading.Thread(target=self._run_lane, daemon=True, name="hookonce-lane"))
            self._threads[-1].start()
        self._busy += 1
        self._taken_at[_CALLED] = time.monotonic()

    def _abandon(self, pending: _PendingItem[Item, Answer]) -> None:
        """Let go of a request that gave up, and of its body if no lane has taken it yet."""
        with self._lock:
            pending.abandoned = True
            while self._waiting and self._waiting[0].abandoned:
                self._waiting.popleft()

    def _run_lane(self) -> None:
        commit: BatchCommitter[Item, Answer] | None = None
        while batch := self._take(commit):
            answers: Sequence[Answer | Exception]
            try:
                commit = commit or self._open_lane()
                answers = commit([pending.item for pending in batch])
            except Exception as error:  # noqa: BLE001  whatever it was, each waiting request must hear of it
                answers = [error] * len(batch)
            self._end(batch, answers)
        if commit is not None:
            _rest(commit)
            commit.close()

    def _end(
        self, batch: Sequence[_PendingItem[Item, Answer]], answers: Sequence[Answer | Exception]
    ) -> None:
        """Give each item its answer, and wake who waits: an event loop once for all of its items."""
        bells: dict[Waits, list[Any]] = {}
        for pending, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                pending.error = answer
            else:
                pending.answer = answer
            bells.setdefault(pending.waits, []).append(pending.bell)
        self._ended_at = time.monotonic()
        self._expected = min(len(batch) + len(self._waiting), self._limit)
        for waits, rung in bells.items():
            waits.ring(rung)

    def _take(self, commit: BatchCommitter[Item, Answer] | None) -> list[_PendingItem[Item, Answer]]:
        """Wait for work and take up to `limit` tickets whose requests still wait; none when closing."""
        while self._await_work(commit):
            with self._lock:
                if batch := self._next_batch():
                    return batch
        return []

    def _next_batch(self) -> list[_PendingItem[Item, Answer]]:
        batch: list[_PendingItem[Item, Answer]] = []
        weight = 0
        while self._waiting and len(batch) < self._limit:
            pending = self._waiting[0]
            if not pending.abandoned:
                weight += self._weigh(pending.item)
                if batch and weight > MAX_WEIGHT:
                    break
                batch.append(pending)
            self._waiting.popleft()
        if len(batch) == 1 and weight > MAX_WEIGHT:
            self._taken_at[threading.get_ident()] = _LONG_AGO
            if self._waiting:
                self._start_lane()
        return batch

    def _await_work(self, commit: BatchCommitter[Item, Answer] | None) -> bool:
        """Wait until something waits; False when closing and nothing does."""
        if commit is not None and not self._is_followed():
            _rest(commit)
        with self._lock:
            while self._waiting or not self._closing:
                if not self._waiting:
                    self._busy -= 1
                    self._await_call(None)
                    continue
                self._gather_requests()
                if self._waiting:  # else another lane, which gathered too, has taken all
                    self._note_work()
                    return True
            return False

    def _is_followed(self) -> bool:
        """Whether another batch follows at once; where others were under way, one of them is waited for.

        If none does, the lane is at work again when this returns.
        """
        with self._lock:
            if not self._waiting and not self._closing and self._expected > 1:
                self._busy -= 1
                self._lingering += 1
                if not self._await_call(self._gather):
                    self._busy += 1
                self._lingering -= 1
            if not self._waiting:
                self._note_work()
            return bool(self._waiting)

    def _await_call(self, seconds: float | None) -> bool:
        """Wait to be called, with the lock held; who calls counts the lane as busy. False after so many seconds."""
        for lane in (threading.get_ident(), _CALLED):
            self._taken_at.pop(lane, None)
        is_called = self._called.wait_for(lambda: self._calls or self._closing, seconds)
        self._calls -= bool(self._calls)
        return bool(is_called)

    def _note_work(self) -> None:
        """Note that the lane of this thread is at work from now on."""
        self._taken_at.pop(_CALLED, None)
        self._taken_at[threading.get_ident()] = time.monotonic()

    def _gather_requests(self) -> None:
        """Give who was answered a moment ago the time to be back, with the lock held."""
        if self._expected > 1 and time.monotonic() - self._ended_at < RECENT.total_seconds():
            self._gathering += 1
            self._gathered.wait_for(
                lambda: self._closing or len(self._waiting) >= self._expected, self._gather
            )
            self._gathering -= 1
        self._expected = 1


def _rest(commit: BatchCommitter[Any, Any]) -> None:
    """Have what no answer waits for done; a lane lives on whatever comes of it."""
    try:
        commit.rest()
    except Exception as error:
        log.exception("what follows a batch failed: %s", type(error).__name__)
