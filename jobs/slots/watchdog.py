"""Holds the slots of a process to their time limits, in a thread that does nothing else and waits for nobody."""

import faulthandler
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from hookonce.jobs.slots.slot import Slot
from hookonce.jobs.slots.slot_limit import SlotLimit, Step

TICK = 0.1
INTERPRETER_HELD = timedelta(seconds=60)
"""A call into C that lets no other thread run for so long ends the process: nobody could end that call."""
_REARM = timedelta(seconds=10)
_STDERR = 2  # the descriptor: what handlers put in the place of `sys.stderr` may have none


class Watchdog:
    """Looks at all slots ten times a second; `on_lost` is told of each that nothing has ended, again and again."""

    def __init__(
        self, slots: Sequence[tuple[Slot | None, SlotLimit]], on_lost: Callable[[Slot], None]
    ) -> None:
        """Look at limits, with the slots that they are of; of what is no slot nothing is told."""
        self._slots = slots
        self._on_lost = on_lost
        self._end = threading.Event()
        self._armed_at = 0.0
        self._thread = threading.Thread(target=self._watch_on, name="watchdog", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """End it."""
        self._end.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()

    def _watch_on(self) -> None:
        while not self._end.wait(TICK):
            now = time.monotonic()
            if now > self._armed_at:  # it takes a thread each time
                self._armed_at = now + _REARM.total_seconds()
                held = (INTERPRETER_HELD + _REARM).total_seconds()
                faulthandler.dump_traceback_later(held, exit=True, file=_STDERR)
            for slot, limit in self._slots:
                if limit.ring(now) is Step.LOST and slot is not None:
                    self._on_lost(slot)
