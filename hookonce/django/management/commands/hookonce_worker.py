"""`python manage.py hookonce_worker`: what `hookonce worker` does, on Django's connection."""

import os
import sys
from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hookonce.django.ledger import ledger_alias, require_shared
from hookonce.django.worker import WEBHOOKS, import_webhooks, require_fitting, transactions_on
from hookonce.jobs import cli
from hookonce.jobs.attempts.attempt import MakeTransactions
from hookonce.jobs.claimer import Claimer
from hookonce.jobs.drain import handlers_of
from hookonce.jobs.handlers import Registry
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.jobs.slots.suspects import Suspects
from hookonce.receiver.cli.output.exits import exits
from hookonce.receiver.config.concurrency import MAX_CONCURRENCY
from hookonce.receiver.config.settings import Settings


class Command(BaseCommand):  # type: ignore[misc]  # Django has no types
    """The command, as Django finds it."""

    help = "Run webhook handlers until stopped, their ORM writes in the transaction of the run."
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--processes", "-p", type=int, default=1, help="workers to run (1)")
        parser.add_argument(
            "--concurrency", "-c", type=int, help="runs at once in each ([receiver] concurrency, or 1)"
        )
        parser.add_argument(
            "--database", help="alias of the ledger's database (HOOKONCE_DATABASE, or default)"
        )
        parser.add_argument("--alone", action="store_true", help="be one worker, unsupervised")
        parser.add_argument("--suspects", action="store_true", help=SUPPRESS)
        parser.add_argument("--place", type=Path, help=SUPPRESS)
        parser.add_argument("--parent", type=int, help=SUPPRESS)

    def handle(self, *_: object, **options: Any) -> None:  # noqa: ANN401  Django's
        """Work; exit 78 if configuration, handlers or schema are not right."""
        with exits():
            alias, place = options["database"] or ledger_alias(), options["place"]
            settings, registry = _ready(alias)
            transactions = transactions_on(alias, settings.database_url)
            at_once = _at_once(options["concurrency"], settings)
            if options["suspects"]:
                cli.work_on_suspects(SingleSlot(settings, registry, transactions), place, options["parent"])
            elif options["alone"]:
                suspects = Suspects([*_itself(alias), "--suspects"], place)
                claimer = _claimer(settings, registry, transactions, at_once, suspects)
                cli.work_alone(claimer, settings, place)
            else:
                modules = [f"{WEBHOOKS}.py of an installed application", *settings.handlers]
                cli.warn_of_none(registry, " or ".join(modules))
                command = [*_itself(alias), "--alone", "--concurrency", str(at_once)]
                processes = max(options["processes"], 1)
                sys.exit(cli.supervise(settings, command, processes, has_slots=at_once > 1))


def _at_once(asked: int | None, settings: Settings) -> int:
    """Return how many runs a worker makes at once. Raises `CommandError` for a number that can't be."""
    at_once = settings.concurrency if asked is None else asked
    if not 1 <= at_once <= MAX_CONCURRENCY:
        raise CommandError(f"--concurrency {at_once}: expected 1 to {MAX_CONCURRENCY}")
    return at_once


def _claimer(
    settings: Settings,
    registry: Registry,
    transactions: MakeTransactions,
    at_once: int,
    suspects: Suspects,
) -> Claimer:
    """Make what claims for so many slots, each with a connection of Django's own: they are by thread."""
    if at_once == 1:
        return SingleSlot(settings, registry, transactions)
    return Pool(settings, registry, transactions, slots=at_once, suspects=suspects)


def _ready(alias: str) -> tuple[Settings, Registry]:
    settings = cli.ready()
    require_shared(alias, settings.database_url)
    import_webhooks()
    registry = handlers_of(settings)
    require_fitting(registry)
    return settings, registry


def _itself(alias: str) -> list[str]:
    """Return the command that starts this one, as it was started."""
    main = sys.modules["__main__"].__spec__
    start = ["-m", main.parent] if main is not None and main.parent else [os.path.abspath(sys.argv[0])]  # noqa: PTH100
    return [sys.executable, *start, "hookonce_worker", "--database", alias]
