"""What may be started besides: slow runs in all slots but one, whoever claims or ends at the same moment."""

import time
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace

import pytest

from hookonce.jobs.attempts.ports import Attempt
from hookonce.jobs.buffer import Buffer
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.slots import capacity as capacities
from hookonce.jobs.slots.capacity import QUICK as QUICK_LANE
from hookonce.jobs.slots.capacity import SLOW as SLOW_LANE
from hookonce.jobs.slots.capacity import Capacity, ClaimCapacity, OneAtATime, Rate
from hookonce.receiver.ledger.runs.claimed import ClaimedRun

SLOW, QUICK = timedelta(seconds=2), timedelta(milliseconds=1)


@dataclass
class Slot:
    under_way: Attempt | None = None
    following: object = None


def run_of(handler):
    return ClaimedRun(None, 0, handler, attempt=1, cycle=1, token=handler)


def anything(_run):
    return True


@pytest.fixture
def registry():
    registry = Registry()
    for name, took in (("slow", SLOW), ("quick", QUICK)):
        handler = Handler(name, "stripe", name, anything, attempts=3, backoff=(QUICK, QUICK), timeout=SLOW)
        registry.add(handler)
        registry.note(name, took)
    return registry


@pytest.fixture
def slots():
    return [Slot() for _ in range(4)]


@pytest.fixture
def buffer():
    buffer = Buffer()
    buffer.put([run_of("slow"), run_of("quick")], time.monotonic() + 60)
    return buffer


@pytest.fixture
def capacity(registry, slots, buffer):
    return Capacity(registry, slots, buffer)


def work_at(slot, handler):
    slot.under_way = Attempt([run_of(handler)], None)


def test_slot_that_is_left_is_kept_for_quick_ones(capacity, slots):
    for slot in slots[:3]:
        work_at(slot, "slow")

    assert capacity.take(anything).handler == "quick"
    assert capacity.take(anything) is None


def test_slow_run_may_follow_another_in_its_slot(capacity, slots):
    for slot in slots[:3]:
        work_at(slot, "slow")

    assert capacity.take(anything, ending=slots[0]).handler == "slow"
    assert slots[0].following.handler == "slow"


def test_claim_under_way_leaves_no_slow_run_to_a_quick_slot_that_ends(capacity, slots):
    work_at(slots[0], "slow")
    work_at(slots[1], "quick")
    assert capacity.of_claim(free=2).lanes(["slow"] * 3) == [SLOW_LANE, SLOW_LANE, None]

    assert capacity.take(anything, ending=slots[1]).handler == "quick"

    capacity.end_claim()
    assert capacity.take(anything, ending=slots[1]).handler == "slow"


def test_what_follows_in_a_slot_counts_before_it_has_begun(capacity, slots, buffer):
    buffer.put([run_of("slow")] * 3, time.monotonic() + 60)
    for slot in slots:
        work_at(slot, "quick")

    taken = [capacity.take(anything, ending=slot) for slot in slots]

    assert [each.handler for each in taken] == ["slow", "slow", "slow", "quick"]
    assert capacity.take(anything) is None


def test_as_many_slow_runs_are_leased_ahead_as_will_start_soon(capacity, slots, monkeypatch):
    monkeypatch.setattr(Rate, "per_second", lambda _: 40.0)
    for slot in slots[:3]:
        work_at(slot, "slow")

    ahead = capacity.of_claim(free=1).lanes(["slow"] * 5)

    assert ahead == [SLOW_LANE] * 2 + [None] * 3, "four in 0.1 s, two of which are there"


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(capacities, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_rate_is_that_of_the_last_quarter_of_a_second(clock):
    lately = Rate()
    rates = []
    for notes, later in ((10, 0.25), (0, 0.2), (20, 0.3), (0, 0.25)):
        for _ in range(notes):
            lately.note()
        clock.now += later
        rates.append(lately.per_second())

    assert rates == pytest.approx([40, 40, 40, 0])


def test_handler_that_was_never_tried_is_slow_but_for_its_first_run(registry):
    registry.add(Handler("new", "stripe", "new", anything, attempts=3, backoff=(QUICK, QUICK), timeout=SLOW))

    lanes = ClaimCapacity(registry, 4, 1, ()).lanes(["new", "new", "quick", "slow"])

    assert lanes == [SLOW_LANE, None, QUICK_LANE, None]


def test_no_slot_is_kept_where_no_handler_may_be_quick(registry, slots, buffer):
    registry.note("quick", SLOW)
    buffer.put([run_of("slow")] * 4, time.monotonic() + 60)
    capacity = Capacity(registry, slots, buffer)

    for slot in slots:
        assert capacity.of_claim(free=1).lanes(["slow"]) == [SLOW_LANE]
        capacity.end_claim()
        assert capacity.take(anything) is not None
        work_at(slot, "slow")


def test_slot_is_kept_for_a_handler_that_was_never_tried(registry, slots, buffer):
    registry.note("quick", SLOW)
    registry.add(Handler("new", "stripe", "new", anything, attempts=3, backoff=(QUICK, QUICK), timeout=SLOW))
    capacity = Capacity(registry, slots, buffer)
    for slot in slots[:3]:
        work_at(slot, "slow")

    assert capacity.take(anything) is None
    assert capacity.of_claim(free=1).lanes(["slow", "new"]) == [None, SLOW_LANE]


def test_slow_runs_are_claimed_alone_and_quick_ones_first_every_other_time(registry):
    first, then = OneAtATime(registry), OneAtATime(registry)
    first.quick_first = True

    assert first.lanes(["slow", "quick", "quick"]) == [None, QUICK_LANE, QUICK_LANE]
    assert then.lanes(["slow", "quick", "quick"]) == [QUICK_LANE, None, None]
    assert first.lanes(["slow", "slow"]) == [QUICK_LANE, None]
