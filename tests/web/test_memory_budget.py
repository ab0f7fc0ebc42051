"""Memory for large bodies: who finds none left waits, one goes on all the same, and nobody takes it with him."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta

import pytest

from hookonce.providers import Reason, Rejected
from hookonce.receiver.processes.waits import IN_THREAD, OnLoop, run
from hookonce.receiver.web import body
from hookonce.receiver.web.body import SMALL_BODY, MemoryBudget, Overloaded, Reservation, read_body

MEGABYTE = 2**20


def on_loop(make):
    async def go():
        with ThreadPoolExecutor(1) as threads:
            return await make(OnLoop(threads, threads))

    return asyncio.run(go())


def reserved(budget, waits, megabytes, done, order):
    async def hold():
        with Reservation(budget, waits) as reservation:
            for size in range(1, megabytes + 1):
                await reservation.reserve(SMALL_BODY + size * MEGABYTE)
                await asyncio.sleep(0)
            order.append(megabytes)
            await done.wait()

    return hold


def test_small_bodies_need_no_memory_of_the_budget():
    budget = MemoryBudget(0)

    with Reservation(budget) as reservation:
        run(reservation.reserve(SMALL_BODY))

    assert budget.left == 0


def test_all_bodies_come_to_their_end_though_together_they_are_too_many():
    budget, order = MemoryBudget(8 * MEGABYTE, 4 * MEGABYTE), []

    async def go(waits):
        done = asyncio.Event()
        done.set()
        await asyncio.gather(*(reserved(budget, waits, 4, done, order)() for _ in range(20)))

    on_loop(go)

    assert order == [4] * 20
    assert budget.left == 4 * MEGABYTE


def test_never_is_more_held_than_the_budget():
    budget, order, held = MemoryBudget(8 * MEGABYTE, 4 * MEGABYTE), [], []

    async def go(waits):
        done = asyncio.Event()
        asked = [asyncio.ensure_future(reserved(budget, waits, 4, done, order)()) for _ in range(5)]
        for _ in range(40):
            await asyncio.sleep(0)
        held.append(4 * MEGABYTE - budget.left)
        done.set()
        await asyncio.gather(*asked)

    on_loop(go)

    assert 4 * MEGABYTE < held[0] <= 8 * MEGABYTE
    assert len(order) == 5


@pytest.mark.parametrize("waiting", [lambda make: run(make(IN_THREAD)), on_loop])
def test_who_waits_too_long_is_told_so_and_takes_nothing(monkeypatch, waiting):
    monkeypatch.setattr(body, "PATIENCE", timedelta(milliseconds=20))
    budget = MemoryBudget(MEGABYTE)

    async def go(waits):
        with Reservation(budget, waits) as first:
            await first.reserve(SMALL_BODY + MEGABYTE)
            with Reservation(budget, waits) as second, pytest.raises(Overloaded):
                await second.reserve(SMALL_BODY + 1)

    waiting(go)

    assert budget.left == MEGABYTE


class Late:
    """A request whose body does not come to its end in time."""

    is_bounded = True

    def __init__(self, size):
        self.headers = {"content-length": str(size + 1)}
        self.pieces = [b"x" * size]

    async def piece(self, _size):
        if not self.pieces:
            raise TimeoutError
        return self.pieces.pop()


def test_body_that_waited_for_memory_and_is_late_may_come_again():
    budget = MemoryBudget(MEGABYTE)

    async def go(waits):
        with ExitStack() as others, Reservation(budget, waits) as mine:
            await others.enter_context(Reservation(budget, waits)).reserve(SMALL_BODY + MEGABYTE)
            reading = asyncio.ensure_future(read_body(Late(2 * SMALL_BODY), MEGABYTE, mine))
            await asyncio.sleep(0)
            others.close()
            with pytest.raises(Overloaded):
                await reading

    on_loop(go)


def test_body_that_is_late_by_itself_is_refused():
    with Reservation(MemoryBudget(0)) as reservation, pytest.raises(Rejected) as refused:
        run(read_body(Late(SMALL_BODY // 2), MEGABYTE, reservation))

    assert refused.value.reason is Reason.TOO_SLOW
