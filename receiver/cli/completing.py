"""What the shell may complete: names from the configuration, and from the ledger if it answers at once.

A completion must be quick and never talks: without a configuration or a server it offers nothing.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import click
import psycopg
from click.shell_completion import CompletionItem

from providers.kit import registry
from receiver import database
from receiver.cli import local
from receiver.ledger import desk, desk_pause
from receiver.ledger.desk import Filter
from receiver.settings import Settings, load_settings

PATIENCE = timedelta(milliseconds=400)
MOST = 30
"""Events offered."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completing(give: Callable[[Settings, str], Iterable[tuple[str, str | None]]]) -> Complete:
    """Make the callback that click wants of one that gives (value, help)."""

    def complete(
        _context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        with suppress(Exception):
            settings = load_settings(need_secrets=False)
            said = give(settings, incomplete)
            return [CompletionItem(value, help=text) for value, text in said if value.startswith(incomplete)]
        return []

    return complete


def _sources(settings: Settings, _incomplete: str) -> list[tuple[str, str | None]]:
    return [(name, each.provider.name) for name, each in sorted(local.sources(settings).items())]


def _providers(settings: Settings, _incomplete: str) -> list[tuple[str, str | None]]:
    return [(name, None) for name in registry.names(settings.provider_places)]


def _handlers(settings: Settings, _incomplete: str) -> list[tuple[str, str | None]]:
    with _ledger(settings) as connection:
        return [(name, None) for name in desk_pause.handlers(connection)]


def _pausable(settings: Settings, incomplete: str) -> list[tuple[str, str | None]]:
    names = _sources(settings, incomplete)
    with suppress(psycopg.Error, database.LedgerUnavailable):
        names += _handlers(settings, incomplete)
    return names


def _events(settings: Settings, incomplete: str) -> list[tuple[str, str | None]]:
    """Ids that begin so: ledger ids need no help, and a colon is the shell's own separator in bash."""
    with _ledger(settings) as connection:
        wanted = Filter(event_id=incomplete or None)
        found = desk.events(connection, wanted, MOST)
        return [(row.event_id, f"{row.source} {row.type} {row.status}") for row in found]


def _ledger(settings: Settings) -> Any:  # noqa: ANN401  psycopg's own context manager
    return database.connect(settings.database_url, lock=PATIENCE, statement=PATIENCE)


SOURCES = _completing(_sources)
PROVIDERS = _completing(_providers)
HANDLERS = _completing(_handlers)
PAUSABLE = _completing(_pausable)
EVENTS = _completing(_events)
