"""`python manage.py hookonce_worker`: what `hookonce worker` does, on Django's connection."""

import os
import sys
from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hookonce.django.ledger import ledger_alias, require_shared
from hookonce.django.worker import (
    WEBHOOKS,
    import_webhooks,
    require_fitting,
    transactions_on,
    webhook_modules,
)
from hookonce.jobs import cli
from hookonce.jobs.children import keep_lines, suspect_of
from hookonce.jobs.drain import handlers_of
from hookonce.jobs.handlers import Registry
from hookonce.receiver.cli.output.exits import exits
from hookonce.receiver.config.settings import MAX_CONCURRENCY, Settings

_OPTIONS = ("processes", "concurrency", "alone", "suspects", "place")
"""The options of `hookonce worker` that this command has as well."""


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
        parser.add_argument(
            "--alone",
            action="store_true",
            help="be one worker, unsupervised; of many slots, it runs no suspects (runs whose worker died)",
        )
        parser.add_argument("--suspects", type=int, help=SUPPRESS)
        parser.add_argument("--place", type=Path, help=SUPPRESS)

    def handle(self, *_: object, **options: Any) -> None:  # noqa: ANN401  Django's
        """Work; exit 78 if configuration, handlers or schema are not right."""
        _require_possible(options["processes"], options["concurrency"])
        with exits():
            alias = options["database"] or ledger_alias()
            settings, registry = _ready(alias, options["suspects"], options["place"], alone=options["alone"])
            cli.work_by(
                settings,
                registry,
                transactions_on(alias, settings.database_url),
                _itself(alias),
                modules=[f"{WEBHOOKS}.py of an installed application", *settings.handlers],
                **{name: options[name] for name in _OPTIONS},
            )


def _require_possible(processes: int, concurrency: int | None) -> None:
    if processes < 1:
        raise CommandError(f"--processes {processes}: expected 1 or more")
    if concurrency is not None and not 1 <= concurrency <= MAX_CONCURRENCY:
        raise CommandError(f"--concurrency {concurrency}: expected 1 to {MAX_CONCURRENCY}")


def _ready(alias: str, suspects: int | None, place: Path | None, *, alone: bool) -> tuple[Settings, Registry]:
    """Return the configuration and the handlers, a child for suspects once there is one."""
    settings = cli.ready()
    require_shared(alias, settings.database_url)
    if suspects is not None:
        suspect_of(settings, suspects, place)
    if alone or suspects is not None:
        keep_lines(settings, webhook_modules())
    import_webhooks()
    registry = handlers_of(settings)
    require_fitting(registry)
    return settings, registry


def _itself(alias: str) -> list[str]:
    """Return the command that starts this one, as it was started."""
    main = sys.modules["__main__"].__spec__
    start = ["-m", main.parent] if main is not None and main.parent else [os.path.abspath(sys.argv[0])]  # noqa: PTH100
    return [sys.executable, *start, "hookonce_worker", "--database", alias]
