import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from hookonce.receiver.intake.group_commit import DeadlineExceeded, GroupCommit
from hookonce.receiver.processes.waits import IN_THREAD, InThread, OnLoop
from tests.support.waiting import until

SOON = timedelta(seconds=0.05)
LONG = timedelta(seconds=10)


class Lane:
    def __init__(self, make):
        self.make = make
        self.is_closed = False
        self.batches, self.rests = 0, []
        """How many batches there were, in all and at each rest."""

    async def commit(self, items, _waits):
        self.batches += 1
        return self.make(items)

    async def rest(self, _waits):
        self.rests.append(self.batches)

    def close(self):
        self.is_closed = True


@pytest.fixture
def committing():
    made = []

    def make(commit, **options):
        made.append(GroupCommit(lambda: Lane(commit), **options))
        return made[-1]

    yield make
    for committer in made:
        committer.close()


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=[n]) for n in range(count)]
    for thread in threads:
        thread.start()
    return threads


def test_committer_answers_each_item_with_its_own(committing):
    committer = committing(lambda items: [item * 2 for item in items])

    assert [committer.submit(n, LONG) for n in range(5)] == [0, 2, 4, 6, 8]


def test_committer_waits_for_those_that_were_under_way(committing):
    batches, go, begun = [], threading.Event(), threading.Event()

    def commit(items):
        begun.set()
        go.wait(10)
        batches.append(sorted(items))
        return items

    def twice(n):
        committer.submit(n, LONG)
        committer.submit(n + 10, LONG)

    committer = committing(commit, lanes=1, gather=LONG)
    threads = in_threads(1, twice)
    begun.wait(10)
    threads += in_threads(1, lambda _: committer.submit(1, LONG))
    until(lambda: committer.waiting, 1)
    go.set()
    for thread in threads:
        thread.join(10)

    assert batches == [[0], [1, 10]]


def test_committer_waits_for_nobody_where_one_is_alone(committing):
    committer = committing(lambda items: items, lanes=1, gather=LONG)
    began = time.monotonic()

    for n in range(3):
        committer.submit(n, LONG)

    assert time.monotonic() - began < LONG.total_seconds() / 2


def test_committer_answers_an_event_loop(committing):
    committer = committing(lambda items: [ValueError("bad") if item == "bad" else item for item in items])

    async def ask():
        with ThreadPoolExecutor(1) as threads:
            waits = OnLoop(threads, threads)
            asked = [committer.committed(item, LONG, waits) for item in (1, "bad", 2)]
            return await asyncio.gather(*asked, return_exceptions=True)

    one, bad, two = asyncio.run(ask())
    assert (one, type(bad), two) == (1, ValueError, 2)


def test_committer_lets_a_request_of_an_event_loop_go_when_the_lanes_hang():
    class Hung(Lane):
        async def commit(self, _items, waits):
            await waits.rung(waits.bell())

    lane = Hung(None)

    async def ask():
        with ThreadPoolExecutor(1) as threads:
            await GroupCommit(lambda: lane, lanes=1).committed("x", SOON, OnLoop(threads, threads))

    with pytest.raises(DeadlineExceeded):
        asyncio.run(ask())
    assert lane.is_closed


def test_committer_has_the_lanes_of_an_event_loop_and_of_threads_beside_each_other():
    lanes = {}

    class Noting(Lane):
        async def commit(self, items, waits):
            lanes.update(dict.fromkeys(items, type(waits)))
            return items

    committer = GroupCommit(lambda: Noting(None), lanes=1)

    async def ask():
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(4) as threads:
            waits = OnLoop(threads, threads)
            for n in range(0, 40, 4):
                in_thread = [loop.run_in_executor(threads, committer.submit, m, LONG) for m in (n, n + 1)]
                on_loop = [committer.committed(m, LONG, waits) for m in (n + 2, n + 3)]
                assert await asyncio.gather(*in_thread, *on_loop) == [n, n + 1, n + 2, n + 3]

    asyncio.run(ask())
    committer.close()

    assert len(lanes) == 40
    assert set(lanes.values()) == {OnLoop, InThread}


def test_committer_of_threads_keeps_what_is_heavy_off_an_event_loop():
    class Noting(Lane):
        async def commit(self, items, _waits):
            return [threading.current_thread() for _ in items]

    committer = GroupCommit(lambda: Noting(None), waits=IN_THREAD)

    async def ask():
        with ThreadPoolExecutor(1) as threads:
            return await committer.committed("x", LONG, OnLoop(threads, threads))

    assert asyncio.run(ask()) is not threading.main_thread()
    committer.close()


def test_committer_lets_a_lane_rest_whose_event_loop_ends_after_the_answer():
    lane = Lane(lambda items: items)

    async def ask():
        with ThreadPoolExecutor(1) as threads:
            return await GroupCommit(lambda: lane).committed("x", LONG, OnLoop(threads, threads))

    assert asyncio.run(ask()) == "x"
    assert lane.rests[-1:] == [1]
    assert lane.is_closed


def test_committer_goes_on_with_another_event_loop_where_one_has_ended():
    committer = GroupCommit(lambda: Lane(lambda items: items), lanes=1)

    async def ask(item):
        with ThreadPoolExecutor(1) as threads:
            return await committer.committed(item, LONG, OnLoop(threads, threads))

    assert [asyncio.run(ask(n)) for n in range(3)] == [0, 1, 2]
    assert committer.is_idle


def test_committer_gathers_what_comes_while_a_batch_commits(committing):
    batches, go, begun = [], threading.Event(), threading.Event()

    def commit(items):
        begun.set()
        go.wait(10)
        batches.append(sorted(items))
        return items

    committer = committing(commit, lanes=1)
    first = in_threads(1, lambda n: committer.submit(n, LONG))
    begun.wait(10)
    rest = in_threads(9, lambda n: committer.submit(n + 1, LONG))
    until(lambda: committer.waiting, 9)
    go.set()
    for thread in first + rest:
        thread.join(10)

    assert batches == [[0], list(range(1, 10))]


def test_committer_raises_for_one_item_what_was_wrong_with_it():
    committer = GroupCommit(
        lambda: Lane(lambda items: [ValueError("bad") if item == "bad" else item for item in items])
    )

    assert committer.submit("good", LONG) == "good"
    with pytest.raises(ValueError, match="bad"):
        committer.submit("bad", LONG)


def test_committer_goes_on_after_a_batch_that_failed_whole(committing):
    def commit(items):
        if "bomb" in items:
            raise RuntimeError("boom")
        return items

    committer = committing(commit)

    with pytest.raises(RuntimeError, match="boom"):
        committer.submit("bomb", LONG)
    assert committer.submit("fine", LONG) == "fine"


def test_committer_goes_on_when_a_lane_can_not_open():
    failing = [OSError("away"), None]

    def open_lane():
        error = failing.pop(0)
        if error:
            raise error
        return Lane(lambda items: items)

    committer = GroupCommit(open_lane, lanes=1)

    with pytest.raises(OSError, match="away"):
        committer.submit(1, LONG)
    assert committer.submit(2, LONG) == 2
    committer.close()


def test_committer_lets_a_request_go_when_the_lanes_hang(committing):
    hung = threading.Event()
    committer = committing(lambda items: (hung.wait(10), items)[1], lanes=1)

    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            committer.submit("x", SOON)

    assert committer.waiting == 0
    hung.set()


def test_committer_closes_its_lanes():
    lane = Lane(lambda items: items)
    committer = GroupCommit(lambda: lane, lanes=1)
    committer.submit(1, LONG)

    committer.close()

    assert lane.is_closed


def test_committer_lets_a_lane_rest_after_the_answer_of_a_lonely_item():
    lane = Lane(lambda items: items)
    committer = GroupCommit(lambda: lane, lanes=1)

    for n in range(2):
        committer.submit(n, LONG)
        until(lambda: lane.rests, [*range(1, n + 2)])
    committer.close()

    assert lane.batches == 2


def test_committer_lets_no_lane_rest_between_batches_that_follow_each_other():
    go, begun = threading.Event(), threading.Event()

    def commit(items):
        begun.set()
        go.wait(10)
        return items

    lane = Lane(commit)
    committer = GroupCommit(lambda: lane, lanes=1)
    threads = in_threads(1, lambda n: committer.submit(n, LONG))
    begun.wait(10)
    threads += in_threads(3, lambda n: committer.submit(n, LONG))
    until(lambda: committer.waiting, 3)
    go.set()
    for thread in threads:
        thread.join(10)
    committer.close()

    assert lane.batches == 2
    assert set(lane.rests) == {2}


def test_committer_goes_on_after_a_rest_that_failed():
    class Restless(Lane):
        async def rest(self, _waits):
            raise RuntimeError("no rest")

    committer = GroupCommit(lambda: Restless(lambda items: items), lanes=1)

    assert [committer.submit(n, LONG) for n in range(3)] == [0, 1, 2]
    committer.close()


def test_committer_calls_another_lane_when_one_is_stuck(committing):
    hung = threading.Event()
    committer = committing(
        lambda items: [hung.wait(10) if item == "hung" else item for item in items], lanes=2
    )
    stuck = in_threads(1, lambda _: committer.submit("hung", LONG))

    until(lambda: committer.submit("fine", SOON), "fine", away=DeadlineExceeded)

    hung.set()
    stuck[0].join(10)


def test_committer_keeps_its_lanes_when_one_takes_what_two_waited_for(committing):
    ends = [threading.Event() for _ in range(6)]
    begun = []

    def commit(items):
        begun.extend(items)
        ends[items[0]].wait(10)
        return items

    def submitted(n):
        [thread] = in_threads(1, lambda _: committer.submit(n, LONG))
        return thread

    def begins(n):
        until(lambda: n in begun)

    committer = committing(commit, lanes=2, gather=SOON)
    threads = [submitted(0)]
    begins(0)
    until(lambda: committer.is_stalled)
    threads.append(submitted(1))
    begins(1)
    threads.append(submitted(2))
    until(lambda: committer.waiting)
    for n in (0, 1, 2):  # two lanes end together, and both gather
        ends[n].set()
    for thread in threads:
        thread.join(10)

    threads = [submitted(3)]
    begins(3)
    until(lambda: committer.is_stalled)
    threads.append(submitted(4))
    begins(4)
    for n in (3, 4):
        ends[n].set()
    for thread in threads:
        thread.join(10)

    assert sorted(begun) == [0, 1, 2, 3, 4]
