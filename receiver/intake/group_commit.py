"""Group commit: the concurrent requests of a process share one round trip to each server.

A lane has its own connection, and is a task of the event loop whose requests it commits, or a thread where requests
are threads (`receiver.processes.waits`). It takes everything that waits, commits it as one batch, and takes what has
come meanwhile. So batches form while the previous one commits. Clients that were just answered are back with their
next request in a moment: as many as were under way are waited for, `GATHER` at most, and whoever is alone waits for
nobody. One lane makes the largest batches; another is called only when that one is stuck. Each request waits for its
own answer, with its own deadline, so a hung server holds a lane and never a request.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.logs import limited
from hookonce.receiver.processes.waits import IN_THREAD, OnLoop, Waits, run

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


MAX_WEIGHT = 500
"""What the items of a batch weigh together at most, so that none keeps an event loop for more than some milliseconds;
but for an item that weighs more by itself."""


_LONG_AGO = float("-inf")
_NO_TIME = timedelta(0)


class DeadlineExceeded(LedgerUnavailable):
    """No answer within the deadline; what was asked may still happen."""


class BatchCommitter(Protocol[Given_contra, Got_co]):
    """Commits batches on connections of its own: one answer (or exception) per item, in order.

    `rest` does what a batch has left to do that no answer waits for; it is called when no other batch follows at once.
    """

    async def commit(  # noqa: D102
        self, items: Sequence[Given_contra], waits: Waits, /
    ) -> Sequence[Got_co | Exception]: ...

    async def rest(self, waits: Waits, /) -> None: ...  # noqa: D102

    def close(self) -> None: ...  # noqa: D102


class _PendingItem(Generic[Item, Answer]):
    """One item on its way: who waits for it, and what came of it."""

    __slots__ = ("abandoned", "answer", "bell", "error", "item", "waits")

    def __init__(self, item: Item, waits: Waits, bell: Any) -> None:  # noqa: ANN401  as `waits` has them
        self.item = item
        self.waits = waits
        self.bell = bell
        self.answer: Answer | None = None
        self.error: Exception | None = None
        self.abandoned = False


class _Lane:
    """Commits one batch after the other; `since` when it is at work, None where it may be called, by `bell`."""

    __slots__ = ("bell", "has_rest", "since", "waits")

    def __init__(self, waits: Waits) -> None:
        self.waits = waits
        self.since: float | None = time.monotonic()
        self.bell = waits.bell()
        self.has_rest = False

    def ring(self) -> None:
        """Have it look."""
        self.waits.ring([self.bell])

    async def rung(self, seconds: timedelta | None) -> None:
        """Wait to be rung, so long at most."""
        await self.waits.rung(self.bell, seconds)


class GroupCommit(Generic[Item, Answer]):
    """Runs `commit` on batches of items in up to `lanes` lanes at once, for each way of waiting.

    After each batch up to `gather` is waited for who was under way beside it. `weigh` says how much work an item is;
    lanes wait as those do whose items they take, or all of them by `waits`.
    Lanes start with the first item, so after any fork, and end with `close`.
    """

    def __init__(
        self,
        open_lane: Callable[[], BatchCommitter[Item, Answer]],
        *,
        lanes: int = 2,
        gather: timedelta = GATHER,
        weigh: Callable[[Item], int] = lambda _item: 1,
        waits: Waits | None = None,
    ) -> None:
        self._open_lane = open_lane
        self._max_lanes = lanes
        self._gather = gather
        self._weigh = weigh
        self._waits = waits
        self._expected = 1  # how many have to wait before an idle lane is woken
        self._waiting: deque[_PendingItem[Item, Answer]] = deque()
        self._lock = threading.RLock()  # a lane of a loop that is gone ends whenever Python finds it
        self._lanes: list[_Lane] = []
        self._gathering: list[_Lane] = []  # lanes that wait for who was under way; they are at work too
        self._joins: list[Callable[[], None]] = []
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
        pending: _PendingItem[Item, Answer] = _PendingItem(item, waits, waits.bell())
        self._enter(pending)
        in_time = False
        try:
            in_time = await waits.rung(pending.bell, deadline)
        finally:
            if not in_time:
                self._abandon(pending)
        if pending.error is not None:
            raise pending.error
        return pending.answer  # type: ignore[return-value]  # set before the bell is rung

    def call(
        self, item: Item, deadline: timedelta, waits: OnLoop, land: Callable[[Answer | Exception], None]
    ) -> None:
        """Commit the item as `committed`, and call `land` with what that returns or raises."""

        def rung(in_time: bool) -> None:  # noqa: FBT001  as a bell
            if not in_time:
                self._abandon(pending)
            land(pending.answer if pending.error is None else pending.error)  # type: ignore[arg-type]  # same

        pending: _PendingItem[Item, Answer] = _PendingItem(item, waits, waits.call(rung, deadline))
        self._enter(pending)

    def close(self) -> None:
        """Let the lanes finish what they have taken and close them; threads are waited for."""
        with self._lock:
            self._closing = True
            for lane in self._lanes:
                if lane.since is None:
                    self._call(lane)
            while self._gathering:
                self._gathering.pop().ring()
        for join in self._joins:
            join()

    @property
    def waiting(self) -> int:
        """How many items no lane has taken yet."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether no lane is at work, nor has anything left to do."""
        return not any(lane.since is not None or lane.has_rest for lane in self._lanes)

    @property
    def is_stalled(self) -> bool:
        """Whether every lane at work has been so for so long that another one is called."""
        latest = max((lane.since for lane in self._lanes if lane.since is not None), default=_LONG_AGO)
        return time.monotonic() - latest > STALLED_AFTER.total_seconds()

    def _enter(self, pending: _PendingItem[Item, Answer]) -> None:
        with self._lock:
            self._waiting.append(pending)
            if self._gathering:
                if len(self._waiting) >= self._expected:
                    self._gathering.pop().ring()
            elif self.is_stalled:
                self._start_lane()

    def _start_lane(self) -> None:
        """Wake an idle lane for who waits longest, or open another if there may be one."""
        waits = self._waits or self._waiting[0].waits
        lanes = [lane for lane in self._lanes if lane.waits is waits]
        idle = next((lane for lane in lanes if lane.since is None), None)
        if idle is not None:
            self._call(idle)
        elif len(lanes) < self._max_lanes:
            lane = _Lane(waits)
            self._lanes.append(lane)
            self._joins.append(waits.start(self._run_lane(lane), "hookonce-lane"))

    def _call(self, lane: _Lane) -> None:
        lane.since = time.monotonic()
        lane.ring()

    def _abandon(self, pending: _PendingItem[Item, Answer]) -> None:
        """Let go of a request that gave up, and of its body if no lane has taken it yet."""
        pending.error = DeadlineExceeded("the ledger did not answer in time")
        with self._lock:
            pending.abandoned = True
            while self._waiting and self._waiting[0].abandoned:
                self._waiting.popleft()

    async def _run_lane(self, lane: _Lane) -> None:
        commit: BatchCommitter[Item, Answer] | None = None
        try:
            while batch := await self._take(lane, commit):
                answers: Sequence[Answer | Exception]
                try:
                    commit = commit or self._open_lane()
                    answers = await commit.commit([pending.item for pending in batch], lane.waits)
                except Exception as error:  # noqa: BLE001  whatever it was, each waiting request must hear of it
                    answers = [error] * len(batch)
                self._end(batch, answers)
            if commit is not None:
                await _rest(commit, lane.waits)
        except asyncio.CancelledError:  # its event loop ends, and does nothing else any more
            if commit is not None:
                run(_rest(commit, IN_THREAD))
            raise
        finally:
            with self._lock:
                self._lanes.remove(lane)
            if commit is not None:
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
        self._expected = min(len(batch) + len(self._waiting), MAX_BATCH)
        for waits, rung in bells.items():
            waits.ring(rung)

    async def _take(
        self, lane: _Lane, commit: BatchCommitter[Item, Answer] | None
    ) -> list[_PendingItem[Item, Answer]]:
        """Wait for work and take items whose requests still wait; none when closing."""
        if commit is not None and not await self._is_followed(lane):
            await _rest(commit, lane.waits)
        lane.has_rest = False
        while await self._await_work(lane):
            with self._lock:
                if batch := self._next_batch():
                    lane.has_rest = True
                    return batch
        return []

    def _next_batch(self) -> list[_PendingItem[Item, Answer]]:
        batch: list[_PendingItem[Item, Answer]] = []
        weight = 0
        while self._waiting and len(batch) < MAX_BATCH:
            pending = self._waiting[0]
            if not pending.abandoned:
                weight += self._weigh(pending.item)
                if batch and weight > MAX_WEIGHT:
                    break
                batch.append(pending)
            self._waiting.popleft()
        return batch

    async def _await_work(self, lane: _Lane) -> bool:
        """Wait until something waits that this lane may take; False when closing and nothing does."""
        while True:
            with self._lock:
                if not self._is_its_turn(lane):
                    self._make_callable(lane)
                    if self._waiting:
                        self._start_lane()
                    if self._closing:
                        return False
            if lane.since is None:
                await lane.rung(None)
                continue
            await self._gather_requests(lane)
            with self._lock:
                if self._is_its_turn(lane):  # else another lane, which gathered too, has taken all
                    lane.since = time.monotonic()
                    return True

    def _is_its_turn(self, lane: _Lane) -> bool:
        """Whether something waits, and first one who waits as the lane does; others have lanes of their own."""
        return bool(self._waiting) and lane.waits is (self._waits or self._waiting[0].waits)

    async def _is_followed(self, lane: _Lane) -> bool:
        """Whether another batch follows at once; where others were under way, one of them is waited for.

        Whoever was answered goes on meanwhile. If none follows, the lane is at work again when this returns.
        """
        with self._lock:
            lingers = not self._waiting and not self._closing
            if lingers:
                self._make_callable(lane)
        if lingers:
            await lane.rung(self._gather if self._expected > 1 else _NO_TIME)
        with self._lock:
            lane.since = time.monotonic()
            return bool(self._waiting)

    def _make_callable(self, lane: _Lane) -> None:
        lane.since, lane.bell = None, lane.waits.bell()

    async def _gather_requests(self, lane: _Lane) -> None:
        """Give who was answered a moment ago the time to be back."""
        with self._lock:
            gathers = (
                1 < self._expected > len(self._waiting)
                and not self._closing
                and time.monotonic() - self._ended_at < RECENT.total_seconds()
            )
            if gathers:
                lane.bell = lane.waits.bell()
                self._gathering.append(lane)
        if gathers:
            await lane.rung(self._gather)
        with self._lock:
            if lane in self._gathering:
                self._gathering.remove(lane)
            self._expected = 1


async def _rest(commit: BatchCommitter[Any, Any], waits: Waits) -> None:
    """Have what no answer waits for done; a lane lives on whatever comes of it."""
    try:
        await commit.rest(waits)
    except Exception as error:
        log.exception("what follows a batch failed: %s", type(error).__name__)
