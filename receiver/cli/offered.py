"""What there is to complete: names from the configuration, and from the ledger if it answers at once.

`receiver.cli.completing` offers the shell those that begin as the word does.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg

from providers.kit import registry
from receiver import database
from receiver.cli import local
from receiver.ledger import desk, desk_pause
from receiver.ledger.desk import Filter
from receiver.settings import Settings, load_settings

PATIENCE = timedelta(milliseconds=400)
MOST = 30
"""Events offered."""

Offered = list[tuple[str, str | None]]


def offered(what: str, incomplete: str) -> Offered:
    """Give what there is of a kind, with a line of help each.

    Raises: whatever reading the configuration, and the servers, may.
    """
    return _KINDS[what](load_settings(need_secrets=False), incomplete)


def _sources(settings: Settings, _incomplete: str) -> Offered:
    return [(name, each.provider.name) for name, each in sorted(local.sources(settings).items())]


def _providers(settings: Settings, _incomplete: str) -> Offered:
    return [(name, None) for name in registry.names(settings.provider_places)]


def _handlers(settings: Settings, _incomplete: str) -> Offered:
    with _ledger(settings) as connection:
        return [(name, None) for name in desk_pause.handlers(connection)]


def _pausable(settings: Settings, incomplete: str) -> Offered:
    names = _sources(settings, incomplete)
    with suppress(psycopg.Error, database.LedgerUnavailable):
        names += _handlers(settings, incomplete)
    return names


def _events(settings: Settings, incomplete: str) -> Offered:
    """Ids that begin so: ledger ids need no help, and a colon is the shell's own separator in bash."""
    with _ledger(settings) as connection:
        wanted = Filter(event_id=incomplete or None)
        found = desk.events(connection, wanted, MOST)
        return [(row.event_id, f"{row.source} {row.type} {row.status}") for row in found]


def _ledger(settings: Settings) -> Any:  # noqa: ANN401  psycopg's own context manager
    return database.connect(settings.database_url, lock=PATIENCE, statement=PATIENCE)


_KINDS: Mapping[str, Callable[[Settings, str], Offered]] = {
    "sources": _sources,
    "providers": _providers,
    "pausable": _pausable,
    "events": _events,
}
