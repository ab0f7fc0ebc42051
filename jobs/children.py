"""The children that a supervisor of workers forks: a worker, and a sweep.

Importing what hookonce is made of takes most of a second; a process that is forked has it at once, and shares its
memory. The supervisor imports nothing of the user's, whose modules may start threads or open connections, which no
fork survives: each child reads configuration, providers and handlers for itself, at each of its starts.
"""

import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from hookonce.jobs import stopping
from hookonce.jobs.attempts.attempt import MakeTransactions
from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.jobs.attempts.transaction_guard import HandlerTransactions
from hookonce.jobs.claimer import SUSPECTS_INTERVAL, Claimer
from hookonce.jobs.drain import handlers_of
from hookonce.jobs.failures.error_summary import whole_message_of
from hookonce.jobs.handlers import HandlerError, Registry
from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.jobs.slots import suspects
from hookonce.jobs.slots.pool import RESTART, Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.jobs.worker import work
from hookonce.receiver.config import dotenv_file, sender_api
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.config.suggestions import ALERTS_SOURCE as ALERTS
from hookonce.receiver.ledger.database.schema_version import SchemaBehind
from hookonce.receiver.monitoring import log_capture
from hookonce.receiver.processes.collector import FOR_HANDLERS, calm_collector
from hookonce.receiver.processes.introduction import introduce, named
from hookonce.receiver.processes.supervisor import BAD_CONFIGURATION

log = logging.getLogger(__name__)

NO_SUSPECTS = (
    "a worker of many slots without a supervisor runs no suspects (runs whose worker died): they wait for a worker "
    "that is not --alone, or has --concurrency 1"
)


def begin(act: Callable[[Settings], object], *, calls_senders: bool = False) -> None:
    """Read the configuration anew, and act; what is wrong with it, or with handlers, is one line and exit status 78.

    No child but the one that `calls_senders` has the keys of their APIs.
    """
    try:
        dotenv_file.load()
        if calls_senders:
            sender_api.restore()
        else:
            sender_api.withdraw()
        settings = load_settings(need_secrets=False)
        require_servers(settings)
        act(settings)
    except (ConfigError, HandlerError, SchemaBehind) as error:
        sys.stderr.write(f"hookonce: {error.text if isinstance(error, ConfigError) else error}\n")
        sys.exit(BAD_CONFIGURATION)


def keep_lines(settings: Settings, modules: Sequence[str] = ()) -> None:
    """Keep what handlers print and log in this process, before they are imported; a framework has its own `modules`."""
    log_capture.install(settings.run_logs, [*settings.handlers, *modules], whole_message_of)


def handlers_here(settings: Settings) -> Registry:
    """Import the user's handlers, say how many there are, and return them."""
    registry = handlers_of(settings)
    log.info("handlers", extra={"modules": list(settings.handlers), "handlers": len(list(registry))})
    if settings.handlers:
        warn_of_none(registry, ", ".join(settings.handlers))
    return registry


def introduce_worker(settings: Settings, registry: Registry, processes: int, concurrency: int) -> None:
    """Say on stderr what a worker is, how much it runs at once, and which sources and handlers it has."""
    introduce(
        "worker",
        "runs handlers until Ctrl-C",
        [
            (
                "runs at once",
                f"{processes * concurrency}: --processes {processes}, --concurrency {concurrency}",
            ),
            ("listens", "to the queue in Redis, and looks into the ledger every second"),
            ("sources", named(settings.sources, "none")),
            *([("commands", named(settings.commands, ""))] if settings.commands else []),
            (
                "handlers",
                named(
                    {each.name for each in registry if each.place != ALERTS}, "none; every event is ignored"
                ),
            ),
        ],
    )


def warn_of_none(registry: Registry, modules: str) -> None:
    """Say so where modules that should have handlers have none."""
    if all(handler.place == ALERTS for handler in registry):
        sys.stderr.write(f"hookonce: nothing in {modules} is decorated with @on, so every event is ignored\n")


def claimer_of(
    settings: Settings,
    registry: Registry,
    concurrency: int,
    transactions: MakeTransactions = HandlerTransactions,
) -> Claimer:
    """Make what claims for so many slots: for one, whose attempts are made in the thread that claims, or for many."""
    if concurrency == 1:
        return SingleSlot(settings, registry, transactions)
    return Pool(settings, registry, transactions, slots=concurrency)


def work_alone(claimer: Claimer, settings: Settings, place: Path | None) -> None:
    """Be one worker until stopped, the next after whoever wrote at `place`."""
    if place:
        claimer.come_after(LastClaims(place))
    elif isinstance(claimer, Pool):
        log.warning(NO_SUSPECTS)
    calm_collector(FOR_HANDLERS)
    work(claimer, settings.redis_url)
    status = claimer.finish()
    if isinstance(claimer, Pool):
        claimer.flush()
        os._exit(status)  # whatever thread nothing has ended


def suspect_of(settings: Settings, number: int, place: Path | None) -> None:
    """Wait until there is a suspect for a child, unless the one before it has died at one."""
    if not (place and LastClaims(place).is_left):
        suspects.await_one(settings, number)


def work_on_suspects(
    settings: Settings,
    registry: Registry,
    number: int,
    place: Path | None,
    transactions: MakeTransactions = HandlerTransactions,
) -> NoReturn:
    """Run suspects, one at a time, until stopped or there was none for a minute; `place` as in `work_alone`.

    The exit status is never 0: the supervisor starts the next child, which waits with nothing loaded.
    """
    pool = Pool(settings, registry, transactions, slots=1, suspects_overdue=suspects.overdue(number))
    last = LastClaims(place) if place else None
    if last:
        pool.come_after(last)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda signum, _: stopping.tell(signum) and None)
    pool.run_due()
    is_over = False
    while not stopping.stopping.wait(SUSPECTS_INTERVAL.total_seconds()):
        if is_over := pool.has_had_no_suspect_for(suspects.PATIENCE):
            log.info("no suspect for a minute: ending, to wait for the next one with nothing loaded")
            break
        pool.run_due()
    status = pool.finish() or RESTART
    if is_over and last:
        last.let_go()
    pool.flush()
    os._exit(status)


def sweep_forever(settings: Settings) -> None:
    """Be a sweep until stopped."""
    Sweep(settings).forever()
