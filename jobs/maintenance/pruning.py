"""Prunes all day long, a little at each turn of the sweep, so that nobody has to think of it."""

import logging
import time
from collections.abc import Iterator
from datetime import timedelta

import psycopg

from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.maintenance.steady_clock import ClockHeld

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
