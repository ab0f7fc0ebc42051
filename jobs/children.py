"""The children that a supervisor of workers forks: a worker, and a sweep; and children that run suspects.

Importing what hookonce is made of takes most of a second; a process that is forked has it at once, and shares its
memory. The supervisor imports nothing of the user's, whose modules may start threads or open connections, which no
fork survives: each child reads configuration, providers and handlers for itself, at each of its starts. So that of
`hookonce dev` loads all anew at SIGHUP, in milliseconds: its children end as at SIGTERM, the worker after the attempt
that is under way, and others are forked; one that can't work says why and waits for the next SIGHUP.

Any run that was under way when a process died may have killed it: none of them is charged, and each becomes a suspect
(`receiver.ledger.runs.takeover`). A child of one slot runs them one after the other, and dies of the one that kills;
that one was alone then, and has used an attempt up. No other worker's death harms it, so that suspects come on however
often workers die.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import NoReturn

from hookonce.jobs import sender_keys, stopping
from hookonce.jobs.attempts.attempt import MakeTransactions
from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.jobs.attempts.transaction_guard import HandlerTransactions
from hookonce.jobs.claimer import SUSPECTS_INTERVAL, Claimer
from hookonce.jobs.drain import handlers_of
from hookonce.jobs.failures.error_summary import whole_message_of
from hookonce.jobs.handlers import HandlerError, Registry
from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.jobs.slots.pool import RESTART, Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.jobs.worker import work
from hookonce.receiver.config import dotenv_file
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings, require_servers
from hookonce.receiver.config.suggestions import ALERTS_SOURCE as ALERTS
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.engines import AWAY
from hookonce.receiver.ledger.database.schema_version import SchemaBehind
from hookonce.receiver.ledger.runs import due_rows
from hookonce.receiver.monitoring import log_capture
from hookonce.receiver.processes.collector import FOR_HANDLERS, calm_collector
from hookonce.receiver.processes.introduction import introduce, named
from hookonce.receiver.processes.supervisor import BAD_CONFIGURATION, Child, Supervisor

log = logging.getLogger(__name__)

CHILDREN = 2
"""Children for suspects of one supervisor, whose workers have many slots; a worker of one slot runs suspects itself."""
_LONG = timedelta(seconds=10)
PATIENCE = timedelta(minutes=1)
"""How long a child keeps what it has loaded, and its connections, when there is no suspect any more."""


def overdue(number: int) -> timedelta:
    """Return how long a suspect was due before a child takes it: the first child at once, the next one what it left."""
    return number * _LONG


def await_one(settings: Settings, number: int) -> None:
    """Wait until a suspect is due for a child; so long nothing of the user's is loaded, and no connection kept."""
    while True:
        with suppress(*AWAY), connections.connect(settings.database_url) as connection:
            if due_rows.is_suspect_due(connection, overdue(number)):
                return
        time.sleep(SUSPECTS_INTERVAL.total_seconds())


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
            sender_keys.restore()
        else:
            sender_keys.withdraw()
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
        await_one(settings, number)


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
    pool = Pool(settings, registry, transactions, slots=1, suspects_overdue=overdue(number))
    last = LastClaims(place) if place else None
    if last:
        pool.come_after(last)
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda signum, _: stopping.tell(signum) and None)
    pool.run_due()
    is_over = False
    while not stopping.stopping.wait(SUSPECTS_INTERVAL.total_seconds()):
        if is_over := pool.has_had_no_suspect_for(PATIENCE):
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


def supervise_reloading(place: Path | None) -> int:
    """Run worker and sweep until stopped; return the exit code. `place`: where the worker writes what it holds."""
    on_end = LastClaims(place).ended if place else None
    children = [
        Child("worker", run=partial(_begin, partial(_work, place)), on_end=on_end),
        Child("sweep", run=partial(_begin, sweep_forever, calls_senders=True)),
    ]
    return Supervisor(children, patient=True, restarts_on_hangup=True).run()


def _begin(act: Callable[[Settings], object], *, calls_senders: bool = False) -> None:
    """Read everything anew, and act.

    No bytecode of the user's modules is kept: Python takes it for a file of the same size and the same second, so one
    that is saved twice in a second would be run as it was first.
    """
    sys.dont_write_bytecode = True
    begin(act, calls_senders=calls_senders)


def _work(place: Path | None, settings: Settings) -> None:
    keep_lines(settings)
    work_alone(SingleSlot(settings, handlers_here(settings)), settings, place)
