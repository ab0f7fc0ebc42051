"""`python manage.py hookonce_worker`: what `hookonce worker` does, on Django's connection."""

import os
import sys
from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand
from django.utils.module_loading import autodiscover_modules

from hookonce.django.ledger import require_shared
from hookonce.jobs import cli
from hookonce.jobs.attempts.django_executor import DjangoExecutor
from hookonce.jobs.drain import handlers_of, make_attempts_by
from hookonce.jobs.handlers import HandlerError, Registry
from hookonce.receiver.cli.output.exits import exits
from hookonce.receiver.config.server_urls import schema_of
from hookonce.receiver.config.settings import Settings

WEBHOOKS = "webhooks"
"""The module of an installed application that has its handlers."""


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
    settings, _ = _ready(alias)
    make_attempts_by(_executor(alias, settings))
    cli.work_alone(settings, place)


def _ready(alias: str) -> tuple[Settings, Registry]:
    settings = cli.ready()
    require_shared(alias, settings.database_url)
    autodiscover_modules(WEBHOOKS)
    registry = handlers_of(settings)
    _require_fitting(registry)
    return settings, registry


def _executor(alias: str, settings: Settings) -> type[DjangoExecutor]:
    """Return the class that makes attempts on the connection of an alias."""
    place = schema_of(settings.database_url)
    return type("DjangoExecutor", (DjangoExecutor,), {"alias": alias, "place": place})


def _require_fitting(registry: Registry) -> None:
    """Raise `HandlerError` for handlers that want a connection or session of SQLAlchemy's, or an event loop."""
    for handler in registry:
        if handler.is_long:
            raise HandlerError(
                f"handler '{handler.name}' has tx='none', but Django's worker gives each handler a transaction of "
                "Django's; have `hookonce worker` run this one, from [receiver] handlers of a configuration of its own"
            )
        if handler.batch:
            raise HandlerError(
                f"handler '{handler.name}' is one of @on_batch, which Django's worker can't run; use @on, or run it by "
                "`hookonce worker`"
            )
        signature = handler.signature
        if signature.is_async or signature.takes_session:
            what = "is an async def" if signature.is_async else "takes an SQLAlchemy session"
            raise HandlerError(
                f"handler '{handler.name}' {what}; in Django a handler is a plain function of (event, connection), "
                "and models need no session"
            )


def _itself(alias: str) -> list[str]:
    """Return the command that starts one worker: this one, as it was started."""
    main = sys.modules["__main__"].__spec__
    start = ["-m", main.parent] if main is not None and main.parent else [os.path.abspath(sys.argv[0])]  # noqa: PTH100
    return [sys.executable, *start, "hookonce_worker", "--alone", "--database", alias]
