"""Scenarios, a module for each subject; `growth` on `aged_ledger` is apart from the others.

`SCENARIOS` is in the order they run: cheap and important first, so that a run cut short says most. A quick run touches
each of them.
"""

from collections.abc import Callable
from typing import NamedTuple

from bench.run import Run
from bench.scenarios import (
    attacks,
    backlogs,
    batches,
    handling,
    limits,
    memory,
    queues,
    receiving,
    slots,
    wrk,
)


class Scenario(NamedTuple):
    """One thing measured. `seconds` is what it takes on two cores; it has one round in a quick run."""

    name: str
    what: str
    measure: Callable[[Run], None]
    seconds: int


SCENARIOS = (
    Scenario("peaks", "deliveries/s: ours, Starlette, the obvious way, empty route", receiving.peaks, 170),
    Scenario("other", "the same on the system's PostgreSQL", receiving.other_postgresql, 35),
    Scenario("answers", "time to answer at 70 % of the peak, beside a torrent", receiving.answer_times, 40),
    Scenario("latency", "accept to done at 50 events/s", handling.latency, 35),
    Scenario("full", "accept to done at full load, ours and the obvious way", handling.full_load, 50),
    Scenario("drain", "a backlog, one worker process", handling.backlog, 55),
    Scenario("slots", "a backlog, one worker process, one at a time and eight", slots.writing, 55),
    Scenario("waiting", "handlers that wait 200 ms, 64 at once in one process", slots.waiting, 30),
    Scenario("together", "a backlog by a handler of batches", handling.in_batches, 35),
    Scenario("fair", "an instant handler beside a slow one", handling.fairness, 18),
    Scenario("redis", "new events with Redis killed", receiving.redis_down, 30),
    Scenario("sealed", "new events, bodies encrypted and not", receiving.sealed, 20),
    Scenario("batches", "ten thousand events in one delivery", batches.batches, 20),
    Scenario("limits", "PostgreSQL and Redis without us", limits.limits, 14),
    Scenario("wrk", "wrk beside our own load generator", wrk.cross_check, 20),
    Scenario("receivers", "new events by 1, 2, 4 gunicorn workers", receiving.scale_receivers, 20),
    Scenario("workers", "a backlog by 1, 2, 4 worker processes", handling.scale_workers, 30),
    Scenario("peers", "deliveries/s: FastAPI and dj-stripe beside ours", receiving.peers, 40),
    Scenario("pgqueuer", "a backlog by hookonce and by pgqueuer", queues.beside_pgqueuer, 30),
    Scenario("queues", "a backlog by hookonce and by task queues, and kill -9", queues.handling, 60),
    Scenario("memory", "memory after many events, and attacks", memory.memory, 50),
    Scenario("attacks", "honest deliveries beside ten attacks, ours and uvicorn", attacks.attacks, 60),
    Scenario("snapshot", "a burst while a snapshot is held open", backlogs.beside_snapshot, 110),
    Scenario("backlogs", "beside backlogs of others, a million among them", backlogs.beside_backlogs, 90),
)


def chosen(names: list[str]) -> list[Scenario]:
    """Return the scenarios of these names, or all. Raises `LookupError` for a wrong one."""
    known = {scenario.name: scenario for scenario in SCENARIOS}
    wrong = [name for name in names if name not in known]
    if wrong:
        raise LookupError(f"no scenario is called '{wrong[0]}'; there are {', '.join(known)}")
    return [known[name] for name in names] or list(SCENARIOS)
