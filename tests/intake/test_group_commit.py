import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from hookonce.receiver.intake.group_commit import MAX_WEIGHT, DeadlineExceeded, GroupCommit
from hookonce.receiver.intake.waits import OnLoop
from tests.support.waiting import until

SOON = timedelta(seconds=0.05)
LONG = timedelta(seconds=10)


class Lane:
    def __init__(self, commit):
        self.commit = commit
        self.is_closed = False
        self.batches, self.rests = 0, []
        """How many batches there were, in all and at each rest."""

    def __call__(self, items):
        self.batches += 1
        return self.commit(items)

    def rest(self):
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


def test_committer_lets_a_request_of_an_event_loop_go_when_the_lanes_hang(committing):
    hung = threading.Event()
    committer = committing(lambda items: (hung.wait(10), items)[1], lanes=1)

    async def ask():
        with ThreadPoolExecutor(1) as threads:
            await committer.committed("x", SOON, OnLoop(threads, threads))

    with pytest.raises(DeadlineExceeded):
        asyncio.run(ask())
    hung.set()


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
        lambda: lambda items: [ValueError("bad") if item == "bad" else item for item in items]
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
        def rest(self):
            raise RuntimeError("no rest")

    committer = GroupCommit(lambda: Restless(lambda items: items), lanes=1)

    assert [committer.submit(n, LONG) for n in range(3)] == [0, 1, 2]
    committer.close()


def test_committer_keeps_nobody_waiting_for_an_item_that_is_much_work(committing):
    begun, done = threading.Event(), threading.Event()

    def commit(items):
        if items == [MAX_WEIGHT + 1]:
            begun.set()
            done.wait(10)
        return items

    committer = committing(commit, weigh=lambda item: item)
    heavy = in_threads(1, lambda _: committer.submit(MAX_WEIGHT + 1, LONG))
    begun.wait(10)
    answers = [committer.submit(1, LONG) for _ in range(20)]
    done.set()
    heavy[0].join(10)

    assert answers == [1] * 20


def test_committer_calls_another_lane_for_who_waits_behind_an_item_that_is_much_work(committing):
    begun, go, done = threading.Event(), threading.Event(), threading.Event()
    answers = []

    def commit(items):
        begun.set()
        go.wait(10)
        if MAX_WEIGHT + 1 in items:
            done.wait(10)
        return items

    committer = committing(commit, weigh=lambda item: item, lanes=2)
    threads = in_threads(1, lambda _: committer.submit(0, LONG))
    begun.wait(10)
    for number, item in enumerate([1, MAX_WEIGHT + 1, 2], 1):
        threads += in_threads(1, lambda _, item=item: answers.append(committer.submit(item, LONG)))
        until(lambda: committer.waiting, number)
    go.set()
    until(lambda: sorted(answers), [1, 2])
    done.set()
    for thread in threads:
        thread.join(10)

    assert sorted(answers) == [1, 2, MAX_WEIGHT + 1]


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
