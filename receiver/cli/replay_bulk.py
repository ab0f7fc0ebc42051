"""The command line as the driver of a bulk replay: at its rate, with a bar, until its events have ended.

Killed at any point, it loses and repeats nothing; what is left is the sweep's then. Ctrl-C stops it where it is.
"""

import sys
import time
from collections.abc import Callable
from typing import Final

import psycopg
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from receiver.cli.rates import Pace
from receiver.cli.servers import ledger, operator
from receiver.ledger import desk_bulk, desk_follow, desk_steps
from receiver.ledger.desk_bulk import Bulk
from receiver.ledger.desk_replay import BATCH, Outcome
from receiver.settings import Settings

DRIVER: Final = "hookonce replay"
_HEARTBEAT: Final = desk_steps.DRIVER_GONE.total_seconds() / 2
_LOOK: Final = 0.3  # seconds between looks at what became of the replayed
_QUIET: Final = 10.0  # seconds without a change after which nobody waits any longer


class Ride:
    """Drives one bulk replay; `bulk` and `progress` are how far it has come."""

    def __init__(
        self, settings: Settings, connection: psycopg.Connection, bulk: Bulk, ring: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._ring = ring
        self.bulk = bulk
        self.progress = desk_follow.Progress(0, 0, 0)

    def run(self, taken: Callable[[list[Outcome]], None], *, wait: bool | None) -> None:
        """Take all steps, then follow what became of the events: to the end, or (None) for as long as it moves."""
        with _bar() as bar:
            task = bar.add_task("", total=self.bulk.matched)

            def show() -> None:
                bar.update(task, completed=self.bulk.replayed + self.bulk.left_alone, description=self.said)

            try:
                self._drive(taken, show)
                if wait is not False:
                    self._follow(show, patient=bool(wait))
            except KeyboardInterrupt:
                self._stop()
            show()

    @property
    def said(self) -> str:
        """How far it has come, in words."""
        words = [
            f"replayed {self.bulk.replayed}",
            f"done {self.progress.done}",
            f"died again {self.progress.dead}",
        ]
        words += [f"still open {self.progress.open}"] if self.progress.open else []
        words += [f"left alone {self.bulk.left_alone}"] if self.bulk.left_alone else []
        return ", ".join(words)

    def _drive(self, taken: Callable[[list[Outcome]], None], show: Callable[[], None]) -> None:
        pace = Pace(self.bulk.rate)
        rung = looked = 0.0
        while self.bulk.ended_at is None:
            self.bulk, outcomes = desk_steps.step(
                self._connection, self.bulk.id, pace.take(BATCH), driver=DRIVER
            )
            taken(outcomes)
            now = time.monotonic()
            if outcomes and now - rung > 1:
                rung = now
                self._ring()
            if now - looked > _LOOK:
                looked = now
                self._look()
            show()
            if self.bulk.ended_at is None:
                time.sleep(min(pace.pause(), _HEARTBEAT))
        self._ring()
        self._look()

    def _follow(self, show: Callable[[], None], *, patient: bool) -> None:
        changed = time.monotonic()
        while True:
            before = self.progress
            self._look()
            show()
            if not self.progress.open:
                return
            if self.progress != before:
                changed = time.monotonic()
            elif not patient and time.monotonic() - changed > _QUIET:
                return
            time.sleep(_LOOK)

    def _look(self) -> None:
        desk_follow.look(self._connection, self.bulk.id)
        self.progress = desk_follow.progress(self._connection, self.bulk.id)

    def _stop(self) -> None:
        """End where it is, on a connection of its own: the other may be in the middle of something."""
        self._connection.close()
        with ledger(self._settings) as connection:
            desk_bulk.stop(connection, self.bulk.id, operator())
            self.bulk = desk_bulk.get(connection, self.bulk.id) or self.bulk
            self.progress = desk_follow.progress(connection, self.bulk.id)


def _bar() -> Progress:
    """Make the bar on stderr; nothing is drawn where that is no terminal."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())
