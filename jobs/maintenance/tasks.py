"""The tasks of a sweep besides notifying: each a little at a time, and no failure of one keeps others waiting.

A new chore is one more line in `MaintenanceTasks.__init__`: what to say when it fails, and a function of the
connection that is safe in many processes at once and takes a fraction of a second. Retention is such a chore, so that
nobody has to think of it.
"""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import psycopg

from hookonce.jobs.alerts.watcher import AlertWatcher
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.intake.rereading import Rereader
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.maintenance import lost_events, partitions, steady_clock
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.maintenance.steady_clock import ClockHeld
from hookonce.receiver.ledger.replay import bulk
from hookonce.receiver.ledger.runs import limit_gate, parking
from hookonce.receiver.ledger.runs.due_cursor import Paced
from hookonce.receiver.ledger.runs.queue_pages import SetBack
from hookonce.receiver.ledger.stats import activity, event_counts, issues
from hookonce.receiver.redis.client import Client

log = logging.getLogger(__name__)

PRUNE_INTERVAL = timedelta(minutes=10)
PRUNE_BUDGET = timedelta(milliseconds=250)
"""How long one turn may take, give or take a step: an eighth of the time between two sweeps."""
PRUNE_STEP = 250
"""Rows of a step: few enough to delete within a statement's time from a disk that must be read."""
ACTOR = "sweep"


class Pruner:
    """One pass after another, each continued over many turns. `[receiver] auto_prune = false` turns it off."""

    def __init__(self, settings: Settings) -> None:
        self._horizons = Retention.of(settings)
        self._is_on = settings.auto_prune
        self._pruning = RetentionPass(self._horizons, size=PRUNE_STEP)
        self._steps: Iterator[None] | None = None
        self._rests_until = 0.0

    def turn(self, connection: psycopg.Connection) -> None:
        """Go on for `PRUNE_BUDGET`; what fails ends the pass. Raises: psycopg.Error."""
        until = time.monotonic() + PRUNE_BUDGET.total_seconds()
        if not self._is_on or time.monotonic() < self._rests_until:
            return
        if self._steps is None:
            self._note(connection)  # of a pass that failed
            self._steps = self._pruning.steps(connection)
        try:
            for _ in self._steps:
                if time.monotonic() > until:
                    return
        except ClockHeld:
            self._rest()
            return
        except psycopg.Error:
            self._rest()
            raise
        self._rest()
        self._note(connection)

    def _rest(self) -> None:
        self._steps, self._rests_until = None, time.monotonic() + PRUNE_INTERVAL.total_seconds()

    def _note(self, connection: psycopg.Connection) -> None:
        """Put down what a pass has pruned, and begin another: what is kept for ever is not walked over again."""
        gone = self._pruning.done
        if gone.is_anything:
            log.info("pruned %s events, days of bodies: %s", gone.events, gone.days)
            self._pruning.audit(connection, ACTOR)
        self._pruning = RetentionPass(self._horizons, size=PRUNE_STEP, begin=self._pruning.begin)


UPKEEP_INTERVAL = timedelta(minutes=10)
COUNT_INTERVAL = timedelta(seconds=10)

Task = Callable[[psycopg.Connection], object]


class MaintenanceTasks:
    """The tasks of one sweep, in order; `client` is the Redis that it watches."""

    def __init__(self, settings: Settings, client: Client) -> None:
        self._mark: event_counts.Mark | None = None
        self._looks = Paced(timedelta(0), time.monotonic)
        self._quarantines = {s.name: s.quarantine for s in settings.sources.values() if s.quarantine}
        self._tasks: tuple[tuple[str, Task], ...] = (
            ("what waits for a clock that was set back", SetBack().put_right),
            ("the clock was not looked at", steady_clock.look),
            ("no partitions for the coming days", _at_most_every(_partition)),  # no right to make tables, say
            ("nothing has left the quarantine", _at_most_every(self._expire)),
            ("what is paused was not parked", self._park),
            ("what is not paused any more stays parked", parking.unpark_left),
            ("limits of long ago are kept", _at_most_every(limit_gate.forget)),
            ("issues of long ago are kept", _at_most_every(issues.forget)),
            ("bulk replays must wait", partial(bulk.advance, reread=Rereader(settings))),
            ("bulk replays are not looked after", bulk.look),
            ("activity was not counted", activity.fill),
            ("trouble was not looked for", AlertWatcher(settings, client).evaluate),
            ("events were not counted", self._count),
            ("lost events were not looked for", lost_events.look),
            ("nothing more was pruned", Pruner(settings).turn),
        )

    def turn(self, connection: psycopg.Connection) -> None:
        """Do a little of each. Raises: psycopg.Error once the connection is lost, or has led to a standby."""
        for failure, task in self._tasks:
            try:
                task(connection)
            except psycopg.Error as error:
                if connection.closed or isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                    raise
                log.warning("sweep: %s: %s", failure, type(error).__name__)

    def _expire(self, connection: psycopg.Connection) -> None:
        quarantine.expire(connection, self._quarantines)

    def _park(self, connection: psycopg.Connection) -> None:
        """Park what is due and paused by its row, and what is hard to find the more seldom the longer it takes."""
        if self._looks.begin() and not parking.park_rows(connection):
            self._looks.end()

    def _count(self, connection: psycopg.Connection) -> None:
        if self._mark is None:
            self._mark = event_counts.mark(connection)
        elif time.monotonic() - self._mark.at > COUNT_INTERVAL.total_seconds():
            self._mark = event_counts.advance(connection, self._mark)


def _partition(connection: psycopg.Connection) -> None:
    for name in partitions.create_partitions(connection):
        log.info("made partition %s", name)


def _at_most_every(task: Task, interval: timedelta = UPKEEP_INTERVAL) -> Task:
    """Have a task done once in an interval, however often it is called."""
    rests_until = 0.0

    def turn(connection: psycopg.Connection) -> None:
        nonlocal rests_until
        now = time.monotonic()
        if now >= rests_until:
            rests_until = now + interval.total_seconds()
            task(connection)

    return turn
