"""Makes handlers fit for stacks whose workers and servers are killed: leases end within seconds.

Each thread of a process writes down which attempts it is in, so that whoever kills it can tell what it was holding. An
event's `story` may say {"slow": seconds}: its first attempt stays so long in the handler, its effect written.
"""

import os
import threading
import time
from dataclasses import replace
from datetime import timedelta
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path

from hookonce.jobs.handlers import registry
from hookonce.receiver.ledger.runs import claims, leases, takeover
from hookonce.receiver.processes import supervisor
from tests.support.stories.acting import directory, story_of

TIMEOUT = timedelta(seconds=2)
LEASE, RENEW_INTERVAL = timedelta(seconds=4), timedelta(seconds=0.5)


def telling(function):
    """Have a handler tell where its process is; whoever freezes the process may then ask the ledger."""

    def stay(given):
        time.sleep(
            max(story_of(event).get("slow", 0) if event.attempt == 1 else 0 for event in _events(given))
        )

    def tell(given):
        held = "\n".join(f"{event.id} {event.attempt}" for event in _events(given))
        (directory() / f"at-{os.getpid()}-{threading.get_native_id()}").write_text(held)

    @wraps(function)
    def handle(event, *given):
        tell(event)
        result = function(event, *given)
        stay(event)
        return result

    @wraps(function)
    async def handle_async(event, given):
        tell(event)
        result = await function(event, given)
        stay(event)
        return result

    return handle_async if iscoroutinefunction(function) else handle


def _events(given):
    return given if isinstance(given, list) else [given]


def held_by(place, pid):
    """The events and attempts that the threads of a process were in last."""
    lines = (line for path in Path(place).glob(f"at-{pid}-*") for line in path.read_text().splitlines())
    return [tuple(map(int, line.split())) for line in lines]


def hurry():
    """Shorten leases and pauses, in the process of a worker: a test's own must stay as it is."""
    claims.LEASE = leases.LEASE = takeover.LEASE = LEASE
    leases.RENEW_INTERVAL = RENEW_INTERVAL
    supervisor.MAX_RESTART_DELAY = supervisor.MIN_RESTART_DELAY
    registry.keep(
        replace(handler, function=telling(handler.function), timeout=TIMEOUT) for handler in registry
    )
