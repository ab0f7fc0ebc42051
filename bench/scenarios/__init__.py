"""Scenarios, a module for each subject; `growth` on `aged_ledger` is apart from the others.

`SCENARIOS` is in the order they run: cheap and important first, so that a run cut short says most.
"""

from collections.abc import Callable
from typing import NamedTuple

from bench.run import Run
from bench.scenarios import backlogs, batches, handling, limits, memory, queues, receiving, slots, wrk


class Scenario(NamedTuple):
    """One thing measured. `seconds` and `quick_seconds` are what it takes on two cores; 0: not in a quick run."""

    name: str
    what: str
    measure: Callable[[Run], None]
    seconds: int
    quick_seconds: int


SCENARIOS = (
    Scenario("peaks", "deliveries/s: new, duplicate, obvious way, empty route", receiving.peaks, 140, 20),
    Scenario(
        "answers", "time to answer at 70 % of the peak, and beside a torrent", receiving.answer_times, 55, 8
    ),
    Scenario("latency", "accept to done at 50 events/s", handling.latency, 45, 6),
    Scenario("full", "accept to done at full load, ours and the obvious way", handling.full_load, 80, 8),
    Scenario("drain", "a backlog, one worker process", handling.backlog, 90, 6),
    Scenario("slots", "a backlog, one worker process, one at a time and eight", slots.writing, 100, 10),
    Scenario("waiting", "handlers that wait 200 ms, 64 at once in one process", slots.waiting, 48, 6),
    Scenario("together", "a backlog by a handler of batches", handling.in_batches, 60, 6),
    Scenario("fair", "an instant handler beside a slow one", handling.fairness, 18, 0),
    Scenario(
        "backlogs",
        "a handler beside backlogs of others, a million among them",
        backlogs.beside_backlogs,
        360,
        0,
    ),
    Scenario("snapshot", "a burst while a snapshot is held open", backlogs.beside_snapshot, 220, 0),
    Scenario("redis", "new events with Redis killed", receiving.redis_down, 40, 5),
    Scenario("sealed", "new events, bodies encrypted and not", receiving.sealed, 30, 0),
    Scenario("batches", "ten thousand events in one delivery", batches.batches, 30, 0),
    Scenario("limits", "PostgreSQL and Redis without us", limits.limits, 20, 4),
    Scenario("wrk", "wrk beside our own load generator", wrk.cross_check, 35, 0),
    Scenario("receivers", "new events by 1, 2, 4 gunicorn workers", receiving.scale_receivers, 35, 0),
    Scenario("workers", "a backlog by 1, 2, 4 worker processes", handling.scale_workers, 40, 0),
    Scenario("peers", "deliveries/s: FastAPI and dj-stripe beside ours", receiving.peers, 60, 0),
    Scenario("pgqueuer", "a backlog by hookonce and by pgqueuer", queues.beside_pgqueuer, 60, 8),
    Scenario("queues", "a backlog by hookonce and by task queues, and kill -9", queues.handling, 230, 0),
    Scenario("memory", "memory after many events, and attacks", memory.memory, 230, 20),
)


def chosen(names: list[str], *, quick: bool) -> list[Scenario]:
    """Return the scenarios of these names, or all that the kind of run has. Raises `LookupError` for a wrong one."""
    known = {scenario.name: scenario for scenario in SCENARIOS}
    wrong = [name for name in names if name not in known]
    if wrong:
        raise LookupError(f"no scenario is called '{wrong[0]}'; there are {', '.join(known)}")
    return [known[name] for name in names] or [s for s in SCENARIOS if s.quick_seconds or not quick]
