"""What may be started besides: slow runs in all slots but one, whoever claims or ends at the same moment."""

import time
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace

import pytest

from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.report import UnderWay
from hookonce.jobs.slots import pace
from hookonce.jobs.slots.occupancy import Occupancy
from hookonce.jobs.slots.pace import Pace
from hookonce.jobs.slots.room import QUICK as QUICK_LANE
from hookonce.jobs.slots.room import SLOW as SLOW_LANE
from hookonce.jobs.slots.room import SlotRoom
from hookonce.jobs.slots.shelf import Shelf

SLOW, QUICK = timedelta(seconds=2), timedelta(milliseconds=1)


@dataclass
class Slot:
    under_way: UnderWay | None = None
    following: object = None


def run_of(handler):
    return SimpleNamespace(handler=handler, token=handler)


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
def shelf():
    shelf = Shelf()
    shelf.put([run_of("slow"), run_of("quick")], time.monotonic() + 60)
    return shelf


@pytest.fixture
def occupancy(registry, slots, shelf):
    return Occupancy(registry, slots, shelf)


def work_at(slot, handler):
    slot.under_way = UnderWay(run_of(handler), None, time.monotonic())


def test_runs_of_a_claim_are_started_in_its_order():
    runs = [SimpleNamespace(number=number, token="claim") for number in range(3)]
    shelf = Shelf()
    shelf.put(runs, time.monotonic() + 60)

    assert shelf.take(lambda run: run.number) is None
    assert [shelf.take(anything) for _ in runs] == runs


def test_slot_that_is_left_is_kept_for_quick_ones(occupancy, slots):
    for slot in slots[:3]:
        work_at(slot, "slow")

    assert occupancy.take(anything).handler == "quick"
    assert occupancy.take(anything) is None


def test_slow_run_may_follow_another_in_its_slot(occupancy, slots):
    for slot in slots[:3]:
        work_at(slot, "slow")

    assert occupancy.take(anything, ending=slots[0]).handler == "slow"
    assert slots[0].following.handler == "slow"


def test_claim_under_way_leaves_no_slow_run_to_a_quick_slot_that_ends(occupancy, slots):
    work_at(slots[0], "slow")
    work_at(slots[1], "quick")
    room = occupancy.room(free=2)
    assert room.lanes(["slow"] * 3) == [SLOW_LANE, SLOW_LANE, None]

    assert occupancy.take(anything, ending=slots[1]).handler == "quick"

    occupancy.end_claim()
    assert occupancy.take(anything, ending=slots[1]).handler == "slow"


def test_what_follows_in_a_slot_counts_before_it_has_begun(occupancy, slots, shelf):
    shelf.put([run_of("slow")] * 3, time.monotonic() + 60)
    for slot in slots:
        work_at(slot, "quick")

    taken = [occupancy.take(anything, ending=slot) for slot in slots]

    assert [each.handler for each in taken] == ["slow", "slow", "slow", "quick"]
    assert occupancy.take(anything) is None


def test_as_many_slow_runs_are_leased_ahead_as_will_start_soon(occupancy, slots, monkeypatch):
    monkeypatch.setattr(Pace, "rate", lambda _: 40.0)
    for slot in slots[:3]:
        work_at(slot, "slow")

    ahead = occupancy.room(free=1).lanes(["slow"] * 5)

    assert ahead == [SLOW_LANE] * 2 + [None] * 3, "four in 0.1 s, two of which are there"


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(pace, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_pace_is_that_of_the_last_quarter_of_a_second(clock):
    lately = Pace()
    rates = []
    for notes, later in ((10, 0.25), (0, 0.2), (20, 0.3), (0, 0.25)):
        for _ in range(notes):
            lately.note()
        clock.now += later
        rates.append(lately.rate())

    assert rates == pytest.approx([40, 40, 40, 0])


def test_handler_that_was_never_tried_is_slow_but_for_its_first_run(registry):
    registry.add(Handler("new", "stripe", "new", anything, attempts=3, backoff=(QUICK, QUICK), timeout=SLOW))

    lanes = SlotRoom(registry, 4, 1, ()).lanes(["new", "new", "quick", "slow"])

    assert lanes == [SLOW_LANE, None, QUICK_LANE, None]


def test_no_slot_is_kept_where_no_handler_may_be_quick(registry, slots, shelf):
    registry.note("quick", SLOW)
    shelf.put([run_of("slow")] * 4, time.monotonic() + 60)
    occupancy = Occupancy(registry, slots, shelf)

    for slot in slots:
        assert occupancy.room(free=1).lanes(["slow"]) == [SLOW_LANE]
        occupancy.end_claim()
        assert occupancy.take(anything) is not None
        work_at(slot, "slow")


def test_slot_is_kept_for_a_handler_that_was_never_tried(registry, slots, shelf):
    registry.note("quick", SLOW)
    registry.add(Handler("new", "stripe", "new", anything, attempts=3, backoff=(QUICK, QUICK), timeout=SLOW))
    occupancy = Occupancy(registry, slots, shelf)
    for slot in slots[:3]:
        work_at(slot, "slow")

    assert occupancy.take(anything) is None
    assert occupancy.room(free=1).lanes(["slow", "new"]) == [None, SLOW_LANE]
