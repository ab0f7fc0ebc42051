"""`python manage.py hookonce_worker`: what `hookonce worker` does, on Django's connection."""

import os
import sys
from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from hookonce.django.ledger import require_shared
from hookonce.django.worker import WEBHOOKS, import_webhooks, require_fitting, transactions_on
from hookonce.jobs import cli
from hookonce.jobs.drain import handlers_of
from hookonce.jobs.handlers import Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.cli.output.exits import exits
from hookonce.receiver.config.settings import Settings


class Command(BaseCommand):  # type: ignore[misc]  # Django has no types
    """The command, as Django finds it."""

    help = "Run webhook handlers until stopped, their ORM writes in the transaction of the run."
    requires_system_checks = ()
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--processes", "-p", type=int, default=1, help="workers to run (1)")
        parser.add_argument("--database", default="default", help="alias of the ledger's database (default)")
        parser.add_argument("--alone", action="store_true", help="be one worker, unsupervised")
        parser.add_argument("--place", type=Path, help=SUPPRESS)

    def handle(self, *_: object, **options: Any) -> None:  # noqa: ANN401  Django's
        """Work; exit 78 if configuration, handlers or schema are not right."""
        with exits():
            alias, place = options["database"], options["place"]
            if options["alone"]:
                _work_alone(alias, place)
            else:
                sys.exit(_supervise(alias, max(options["processes"], 1)))


def _supervise(alias: str, processes: int) -> int:
    settings, registry = _ready(alias)
    modules = [f"{WEBHOOKS}.py of an installed application", *settings.handlers]
    cli.warn_of_none(registry, " or ".join(modules))
    return cli.supervise(settings, _itself(alias), processes)


def _work_alone(alias: str, place: Path | None) -> None:
    settings, registry = _ready(alias)
    cli.work_alone(
        SingleSlot(settings, registry, transactions_on(alias, settings.database_url)), settings, place
    )


def _ready(alias: str) -> tuple[Settings, Registry]:
    settings = cli.ready()
    require_shared(alias, settings.database_url)
    import_webhooks()
    registry = handlers_of(settings)
    require_fitting(registry)
    return settings, registry


def _itself(alias: str) -> list[str]:
    """Return the command that starts one worker: this one, as it was started."""
    main = sys.modules["__main__"].__spec__
    start = ["-m", main.parent] if main is not None and main.parent else [os.path.abspath(sys.argv[0])]  # noqa: PTH100
    return [sys.executable, *start, "hookonce_worker", "--alone", "--database", alias]
