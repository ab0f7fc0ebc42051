"""Values that the shell completes: names from the configuration, and from the ledger if it answers at once.

`receiver.cli.options.completion_types` offers the shell those that begin as the word does.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta

from hookonce.providers.kit import registry
from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.connections import UNREACHABLE
from hookonce.receiver.cli.desk import desk
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.desk.listed_events import EventsQuery, list_events
from hookonce.receiver.desk.pauses import list_handlers
from hookonce.receiver.samples import files

COMPLETION_TIMEOUT = timedelta(milliseconds=400)
MAX_OFFERED = 30
"""Events offered."""

Offered = list[tuple[str, str | None]]


def offered(what: str, incomplete: str, source: str | None = None) -> Offered:
    """Return what there is of a kind, of a source perhaps, with a line of help each.

    Raises: whatever reading the configuration, and the servers, may.
    """
    settings = load_settings(need_secrets=False)
    if what == "sample types":
        return _sample_types(settings, source)
    return _KINDS[what](settings, incomplete)


def _sources(settings: Settings, _incomplete: str) -> Offered:
    return [(name, each.provider.name) for name, each in sorted(local_sources.sources(settings).items())]


def _providers(settings: Settings, _incomplete: str) -> Offered:
    return [(name, None) for name in registry.names(settings.provider_places)]


def _pausable(settings: Settings, incomplete: str) -> Offered:
    names = _sources(settings, incomplete)
    with suppress(*UNREACHABLE), desk(patience=COMPLETION_TIMEOUT) as here:
        names += [(each.name, None) for each in here.ask(list_handlers).data]
    return names


def _events(_settings: Settings, incomplete: str) -> Offered:
    """Ids that begin so: ledger ids need no help, and a colon is the shell's own separator in bash."""
    asked = EventsQuery.model_validate({"event_id": incomplete or None, "limit": MAX_OFFERED})
    with desk(patience=COMPLETION_TIMEOUT) as here:
        found = here.ask(list_events, asked=asked).data
    return [(row.event_id, f"{row.source} {row.type} {row.status}") for row in found]


def _sample_types(settings: Settings, source: str | None) -> Offered:
    if source is None:
        return []
    return [(kind, None) for kind in files.types(local_sources.source(settings, source).provider.name)]


_KINDS: Mapping[str, Callable[[Settings, str], Offered]] = {
    "sources": _sources,
    "providers": _providers,
    "pausable": _pausable,
    "events": _events,
}
