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

from hookonce.receiver.cli.connections import ledger, operator
from hookonce.receiver.cli.options.rate_option import Pace
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.replay import (
    bulk as bulk_replays,
)
from hookonce.receiver.ledger.replay import (
    bulk_progress,
    bulk_steps,
)
from hookonce.receiver.ledger.replay.bulk import Bulk
from hookonce.receiver.ledger.replay.events import REPLAY_BATCH, ReplayResult

DRIVER: Final = "hookonce replay"
_HEARTBEAT_INTERVAL: Final = bulk_steps.DRIVER_GONE.total_seconds() / 2
_POLL_INTERVAL: Final = 0.3  # seconds between looks at what became of the replayed
_IDLE_TIMEOUT: Final = 10.0  # seconds without a change after which nobody waits any longer


class BulkRun:
    """Drives one bulk replay; `bulk` and `progress` are how far it has come."""

    def __init__(
        self, settings: Settings, connection: psycopg.Connection, bulk: Bulk, notify: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._connection = connection
        self._notify = notify
        self.bulk = bulk
        self.progress = bulk_progress.Progress(0, 0, 0)

    def run(self, taken: Callable[[list[ReplayResult]], None], *, wait: bool | None) -> None:
        """Take all steps, then follow what became of the events: to the end, or (None) for as long as it moves."""
        with _bar() as bar:
            task = bar.add_task("", total=self.bulk.matched)

            def show() -> None:
                bar.update(
                    task, completed=self.bulk.replayed + self.bulk.left_alone, description=self.summary
                )

            try:
                self._drive(taken, show)
                if wait is not False:
                    self._follow(show, patient=bool(wait))
            except KeyboardInterrupt:
                self._stop()
            show()

    @property
    def summary(self) -> str:
        """How far it has come, in words."""
        words = [
            f"replayed {self.bulk.replayed}",
            f"done {self.progress.done}",
            f"died again {self.progress.dead}",
        ]
        words += [f"still open {self.progress.open}"] if self.progress.open else []
        words += [f"left alone {self.bulk.left_alone}"] if self.bulk.left_alone else []
        return ", ".join(words)

    def _drive(self, taken: Callable[[list[ReplayResult]], None], show: Callable[[], None]) -> None:
        pace = Pace(self.bulk.rate)
        notified = looked = 0.0
        while self.bulk.ended_at is None:
            self.bulk, outcomes = bulk_steps.step(
                self._connection, self.bulk.id, pace.take(REPLAY_BATCH), driver=DRIVER
            )
            taken(outcomes)
            now = time.monotonic()
            if outcomes and now - notified > 1:
                notified = now
                self._notify()
            if now - looked > _POLL_INTERVAL:
                looked = now
                self._look()
            show()
            if self.bulk.ended_at is None:
                time.sleep(min(pace.pause(), _HEARTBEAT_INTERVAL))
        self._notify()
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
            elif not patient and time.monotonic() - changed > _IDLE_TIMEOUT:
                return
            time.sleep(_POLL_INTERVAL)

    def _look(self) -> None:
        bulk_progress.look(self._connection, self.bulk.id)
        self.progress = bulk_progress.progress(self._connection, self.bulk.id)

    def _stop(self) -> None:
        """End where it is, on a connection of its own: the other may be in the middle of something."""
        self._connection.close()
        with ledger(self._settings) as connection:
            bulk_replays.stop(connection, self.bulk.id, operator())
            self.bulk = bulk_replays.get(connection, self.bulk.id) or self.bulk
            self.progress = bulk_progress.progress(connection, self.bulk.id)


def _bar() -> Progress:
    """Return the bar on stderr; nothing is drawn where that is not a terminal."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())
