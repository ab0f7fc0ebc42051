"""The worker of `hookonce dev`: SIGHUP has it load configuration, providers and handlers anew, in milliseconds.

One process has imported everything but what is the user's, and forks a worker and a sweep off itself. At SIGHUP they
end as at SIGTERM, the worker after the attempt that is under way, and others are forked. One that can't work says why
and waits for the next SIGHUP.
"""

import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from hookonce.jobs import handlers
from hookonce.jobs.attempts.last_attempt import LastAttempt
from hookonce.jobs.drain import configured
from hookonce.jobs.handlers import HandlerError
from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.jobs.worker import work
from hookonce.receiver.config import dotenv_file
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.ledger.database.schema_version import SchemaBehind
from hookonce.receiver.processes.supervisor import BAD_CONFIGURATION, Child, Supervisor

log = logging.getLogger(__name__)


def supervise(place: Path | None, warn: Callable[[Settings], None]) -> int:
    """Run worker and sweep until stopped; return the exit code.

    `place` is where the worker writes which attempt it is at; `warn` is called with the configuration once handlers
    are imported.
    """
    last = LastAttempt(place) if place else None
    children = [
        Child("worker", run=partial(_begin, partial(_work, last, warn)), on_end=last.ended if last else None),
        Child("sweep", run=partial(_begin, _sweep)),
    ]
    return Supervisor(children, patient=True, restarts_on_hangup=True).run()


def _begin(act: Callable[[Settings], None]) -> None:
    """Read everything anew, and act; what is wrong with it is said in a line.

    No bytecode of the user's modules is kept: Python takes it for a file of the same size and the same second, so one
    that is saved twice in a second would be run as it was first.
    """
    sys.dont_write_bytecode = True
    try:
        dotenv_file.load()
        settings = load_settings(need_secrets=False)
        require_servers(settings)
        act(settings)
    except (ConfigError, HandlerError, SchemaBehind) as error:
        sys.stderr.write(f"hookonce: {error.text if isinstance(error, ConfigError) else error}\n")
        sys.exit(BAD_CONFIGURATION)


def _work(last: LastAttempt | None, warn: Callable[[Settings], None], settings: Settings) -> None:
    claimer = SingleSlot(*configured())
    log.info("handlers", extra={"modules": list(settings.handlers), "handlers": len(handlers.registry)})
    warn(settings)
    if last:
        claimer.come_after(last)
    work(claimer, settings.redis_url)


def _sweep(settings: Settings) -> None:
    Sweep(settings).forever()
