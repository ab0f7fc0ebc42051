"""`hookonce worker` and `hookonce sweep`."""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial, reduce
from pathlib import Path
from typing import NoReturn

import click
import psycopg

from hookonce.jobs import sender_keys
from hookonce.jobs.attempts.attempt import MakeTransactions
from hookonce.jobs.attempts.last_claims import LastClaims
from hookonce.jobs.children import (
    CHILDREN,
    begin,
    claimer_of,
    handlers_here,
    introduce_worker,
    keep_lines,
    supervise_reloading,
    suspect_of,
    sweep_forever,
    warn_of_none,
    work_alone,
    work_on_suspects,
)
from hookonce.jobs.drain import configured, handlers_of
from hookonce.jobs.handlers import HandlerError, Registry
from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.receiver import logs
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.server_urls import schema_of
from hookonce.receiver.config.settings import MAX_CONCURRENCY, Settings, load_settings, require_servers
from hookonce.receiver.config.suggestions import ALERTS_SOURCE as ALERTS
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.monitoring import health, rights
from hookonce.receiver.processes.forked import ForkedProcess
from hookonce.receiver.processes.supervisor import BAD_CONFIGURATION, Child, Supervisor

_HOOKONCE = (sys.executable, "-m", "hookonce.receiver.cli")
OnEnd = Callable[[str], bool] | None
MakeWorker = Callable[[str, Path | None, OnEnd], Child]
MakeSuspects = Callable[[int, Path | None, OnEnd], Child]
_MAX_SAID = 4000
"""Characters of an error; far less than a pipe holds."""
MAX_TAKEN = 400
"""Patterns that are written: as many as have room in a pipe."""


_OPTIONS = (
    click.option(
        "--processes", "-p", default=1, show_default=True, type=click.IntRange(1), help="RQ workers to run."
    ),
    click.option(
        "--concurrency",
        "-c",
        type=click.IntRange(1, MAX_CONCURRENCY),
        help="Runs at once in each; [receiver] concurrency, or 1.",
    ),
    click.option(
        "--alone",
        is_flag=True,
        hidden=True,
        help="Be one RQ worker, unsupervised; of many slots, it runs no suspects (runs whose worker died).",
    ),
    click.option(
        "--place", type=click.Path(path_type=Path), hidden=True, help="File for the state of the worker."
    ),
)


def worker_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `hookonce worker`, which a framework's worker has as well."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), function)


@click.command()
@worker_options
@click.option("--check", type=int, hidden=True, help="Load handlers, write what came of it there, and end.")
@click.option("--reloading", is_flag=True, hidden=True, help="Load handlers again at SIGHUP.")
def worker(  # noqa: PLR0913  an option each
    processes: int,
    concurrency: int | None,
    *,
    alone: bool,
    place: Path | None,
    check: int | None,
    reloading: bool,
) -> None:
    """Run handlers until stopped: RQ workers and a sweep, each started again if it dies.

    Exit 78 if configuration, handlers or schema are not right.
    """
    if check is not None or alone:
        sender_keys.withdraw()
    if check is not None:
        check_handlers(check)
    if alone:
        settings = ready()
        keep_lines(settings)
        work_alone(claimer_of(*configured(), concurrency or settings.concurrency), settings, place)
        return
    sender_keys.hide()
    logs.configure()
    if reloading:
        with _directory() as directory:
            sys.exit(supervise_reloading(Path(directory, "1") if directory else None))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # until there is something to stop
    if status := ForkedProcess(partial(begin, partial(_check, processes, concurrency))).wait():
        sys.exit(status)
    sweeping = Child("sweep", run=partial(begin, sweep_forever, calls_senders=True))
    sys.exit(
        supervise(partial(_forked, concurrency), partial(_forked_suspects, concurrency), sweeping, processes)
    )


def _check(processes: int, concurrency: int | None, settings: Settings) -> None:
    """Import the user's handlers and providers, which the supervisor must not, and say what this worker is."""
    _require_schema(settings)
    _warn_of_rights(settings.database_url)
    introduce_worker(settings, handlers_here(settings), processes, concurrency or settings.concurrency)


def _forked(concurrency: int | None, name: str, place: Path | None, on_end: OnEnd) -> Child:
    """Return a worker that is forked off its supervisor."""

    def act(settings: Settings) -> None:
        keep_lines(settings)
        at_once = concurrency or settings.concurrency
        work_alone(claimer_of(settings, handlers_of(settings), at_once), settings, place)

    return Child(name, run=partial(begin, act), on_end=on_end)


def _forked_suspects(concurrency: int | None, number: int, place: Path | None, on_end: OnEnd) -> Child:
    """Return a child that runs suspects, where workers have many slots."""

    def act(settings: Settings) -> None:
        if (concurrency or settings.concurrency) > 1:
            suspect_of(settings, number, place)
            keep_lines(settings)
            work_on_suspects(settings, handlers_of(settings), number, place)

    return Child(
        f"suspects {number + 1}",
        run=partial(begin, act),
        on_end=on_end,
        may_end=True,  # where workers have one slot; else its status is never 0
        on_death=signal.SIGTERM,
    )


def _started(command: Sequence[str], name: str, place: Path | None, on_end: OnEnd) -> Child:
    """Return a worker that is started by a command: its supervisor has imported what no fork survives."""
    return Child(name, [*command, *(["--place", str(place)] if place else [])], on_end=on_end)


def _started_suspects(itself: Sequence[str], number: int, place: Path | None, on_end: OnEnd) -> Child:
    """Return a child for suspects that is started by a command, as such a worker is."""
    command = [*itself, "--suspects", str(number), *(["--place", str(place)] if place else [])]
    return Child(f"suspects {number + 1}", command, on_end=on_end, on_death=signal.SIGTERM)


def check_handlers(descriptor: int) -> NoReturn:
    """Load what a worker loads at its start, write as JSON what came of it, and end: `hookonce doctor` asks.

    At once, whatever threads the user's modules have started.
    """
    said: dict[str, object]
    try:
        registry = handlers_of(load_settings(need_secrets=False))
        found = [each for each in registry if each.place != ALERTS]
        takes = sorted({(each.name, each.place, each.pattern) for each in found})
        said = {"handlers": len({each.name for each in found}), "takes": takes[:MAX_TAKEN]}
    except HandlerError as error:
        said = {"handler_error": str(error)[:_MAX_SAID]}
    except ConfigError as error:
        said = {"config_error": "; ".join(error.mistakes)[:_MAX_SAID]}
    os.write(descriptor, json.dumps(said).encode())
    os._exit(0 if "handlers" in said else BAD_CONFIGURATION)


def work_by(  # noqa: PLR0913  a worker's parts, and its options by keyword
    settings: Settings,
    registry: Registry,
    transactions: MakeTransactions,
    itself: Sequence[str],
    *,
    modules: Sequence[str],
    processes: int,
    concurrency: int | None,
    alone: bool,
    suspects: int | None,
    place: Path | None,
) -> None:
    """Be a framework's worker, whose handlers write in its own `transactions`; `itself` starts another one.

    `modules`: where it has looked for handlers. The options are those of `hookonce worker`; `suspects`: be the child
    of that number.
    """
    at_once = concurrency or settings.concurrency
    if suspects is not None:
        work_on_suspects(settings, registry, suspects, place, transactions)
    elif alone:
        work_alone(claimer_of(settings, registry, at_once, transactions), settings, place)
    else:
        if modules:
            warn_of_none(registry, " or ".join(modules))
        _warn_of_rights(settings.database_url)
        introduce_worker(settings, registry, processes, at_once)
        started = partial(_started, [*itself, "--alone", "--concurrency", str(at_once)])
        of_suspects = partial(_started_suspects, itself) if at_once > 1 else None
        sweeping = Child("sweep", [*_HOOKONCE, "sweep"], sender_keys.withdraw())
        sys.exit(supervise(started, of_suspects, sweeping, processes))


def supervise(worker: MakeWorker, suspects: MakeSuspects | None, sweeping: Child, processes: int) -> int:
    """Run so many workers, children for suspects and a sweep until stopped; return the exit code.

    Each but the sweep is given a place of its own where it writes which claims it holds, and this process how it has
    ended.
    """
    with _directory() as directory:

        def place(name: str) -> tuple[Path | None, OnEnd]:
            path = Path(directory, name) if directory else None
            return path, LastClaims(path).ended if path else None

        children = [worker(f"worker {n + 1}", *place(str(n + 1))) for n in range(processes)]
        if suspects is not None:
            children += [suspects(n, *place(f"suspects-{n}")) for n in range(CHILDREN)]
        return Supervisor([*children, sweeping]).run()


def _directory() -> AbstractContextManager[str | None]:
    """Make a directory for as long as a block lasts; None where nothing can be written."""
    try:
        return tempfile.TemporaryDirectory(prefix="hookonce-", ignore_cleanup_errors=True)
    except OSError:
        return nullcontext()


@click.command()
@click.option("--once", is_flag=True, help="Sweep once and end.")
def sweep(*, once: bool) -> None:
    """Requeue due events whose notification was lost, every few seconds."""
    settings = ready(may_wait=not once)
    if once:
        due = Sweep(settings).once()
        click.echo("something is due; notified the workers" if due else "nothing is due", err=True)
    else:
        sweep_forever(settings)


def _warn_of_rights(url: str) -> None:
    with suppress(LedgerUnavailable, psycopg.Error), connections.connect(url) as connection:
        if warning := rights.search_path(connection, schema_of(url)):
            click.echo(f"hookonce: {warning}", err=True)


def ready(*, may_wait: bool = True) -> Settings:
    """Return the configuration once it and the schema are right; a database that is away may be waited for."""
    logs.configure()
    settings = load_settings(need_secrets=False)
    require_servers(settings)
    _require_schema(settings, may_wait=may_wait)
    return settings


def _require_schema(settings: Settings, *, may_wait: bool = True) -> None:
    """Raise `SchemaBehind` where the schema is not right; a database that is away may be waited for."""
    try:
        health.require_schema(settings.database_url)
    except LedgerUnavailable:
        if not may_wait:
            raise
        click.echo(f"hookonce[{os.getpid()}]: the database does not answer yet", err=True)
