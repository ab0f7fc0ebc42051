"""Waiting for runs to end, for as long as there is a worker that may make them."""

import sys
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Final

from hookonce.receiver.cli.connections import at
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.desk.pauses import list_handlers
from hookonce.receiver.desk.registry import Asks

IDLE_TIMEOUT: Final = 10.0
"""Seconds without a change after which it is looked whether any worker is there."""
_ANNOUNCED: Final = timedelta(minutes=11)
"""Within this time a worker announces its handlers twice."""


def interval() -> float:
    """Return the seconds between two looks at what may have changed."""
    return 2.0 if at() else 0.3


def wait_for(
    here: Asks, is_open: Callable[[], int], handlers: Collection[str] = (), *, patient: bool = True
) -> None:
    """Look until nothing is open; unless `patient`, only as long as it changes. Exits with 3 where no worker runs it.

    `handlers` are those that have to run; without any, it takes a worker that has one.
    """
    changed, before, is_told = time.monotonic(), -1, False
    while number := is_open():
        if number != before:
            changed, before = time.monotonic(), number
        elif time.monotonic() - changed > IDLE_TIMEOUT:
            if not patient:
                return
            _require_worker(here, handlers)
            if not is_told:
                tell(f"{number} still to end; `hookonce doctor` says whether a worker runs")
            changed, is_told = time.monotonic(), True
        time.sleep(interval())


def _require_worker(here: Asks, handlers: Collection[str]) -> None:
    lately = datetime.now(UTC) - _ANNOUNCED
    known = here.ask(list_handlers).data
    alive = {each.name for each in known if any(one.announced_at > lately for one in each.takes)}
    missing = sorted(set(handlers) - alive)
    if missing or not alive:
        what = f"has {clean(', '.join(missing))}" if missing else "has registered a handler lately"
        tell(
            f"hookonce: no worker {what}, so it waits; start `hookonce worker`, then `hookonce events list` shows it"
        )
        sys.exit(Exit.PARTIAL)
