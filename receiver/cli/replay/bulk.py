"""A bulk replay as its command drives it, here or elsewhere: at its rate, with a bar, until its events have ended.

Killed at any point, it loses and repeats nothing; what is left is the sweep's then. Ctrl-C stops it where it is.
"""

import sys
import time
from collections.abc import Callable, Sequence

import click

from hookonce.receiver.cli.desk import desk
from hookonce.receiver.cli.replay.waiting import interval, wait_for
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.replays import (
    BulkPath,
    BulkStepRequest,
    Outcome,
    get_bulk_replay,
    step_bulk_replay,
    stop_bulk_replay,
)
from hookonce.receiver.desk.rows import BulkReplay


class BulkRun:
    """Drives one bulk replay; `bulk` is how far it has come."""

    def __init__(self, bulk: BulkReplay, rate: float | None) -> None:
        self.bulk = bulk
        self._which = BulkPath(bulk=bulk.id)
        self._rate = rate

    def run(self, here: Asks, taken: Callable[[Sequence[Outcome]], None], *, wait: bool | None) -> None:
        """Take all steps, then follow what became of the events: to the end, or (None) for as long as it moves."""
        with click.progressbar(
            length=self.bulk.matched,
            width=0,
            show_pos=True,
            item_show_func=lambda summary: summary,
            file=sys.stderr,
            hidden=not sys.stderr.isatty(),
        ) as bar:

            def show() -> None:
                bar.update(self.bulk.replayed + self.bulk.left_alone - bar.pos, self.summary)
                bar.render_progress()  # `update` does so only where the bar has grown

            try:
                while self.bulk.is_running:
                    taken(self._step(here))
                    show()
                if wait is not False:
                    wait_for(here, lambda: self._open(here, show), patient=bool(wait))
            except KeyboardInterrupt:
                with desk() as other:  # the first may be in the middle of something
                    self.bulk = other.ask(stop_bulk_replay, which=self._which)
            show()

    @property
    def summary(self) -> str:
        """How far it has come, in words."""
        bulk = self.bulk
        words = [f"replayed {bulk.replayed}", f"done {bulk.done}", f"died again {bulk.dead}"]
        words += [f"still open {bulk.open}"] if bulk.open else []
        words += [f"left alone {bulk.left_alone}"] if bulk.left_alone else []
        return ", ".join(words)

    def _step(self, here: Asks) -> Sequence[Outcome]:
        before = self.bulk.last_event
        asked = BulkStepRequest(rate=self._rate)
        step = here.ask(step_bulk_replay, which=self._which, asked=asked)
        self.bulk = step.bulk
        if self.bulk.is_running and (self.bulk.rate or self.bulk.last_event == before):
            time.sleep(interval())
        return step.outcomes

    def _open(self, here: Asks, show: Callable[[], None]) -> int:
        self.bulk = here.ask(get_bulk_replay, which=self._which)
        show()
        return self.bulk.open
