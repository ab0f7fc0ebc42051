"""The provider that reads an event's body, also where the event's source is not known to this process."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

from hookonce.jobs.event import json_or_none
from hookonce.providers import Delivery, Event, Rejected
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.settings import Settings


def provider_lookup(settings: Settings) -> Callable[[str, str], Provider | None]:
    """Return what finds the provider of an event by its source and the provider's name.

    A source that is made by the variable of its secret is not known where that variable is not set. It has no
    options, so its provider's name is enough.
    """
    known = {name: source.provider for name, source in settings.sources.items()}

    @cache
    def found(source: str, provider: str) -> Provider | None:
        if source in known:
            return known[source]
        try:
            return _or_json(load(provider, settings.provider_places))
        except (LookupError, ValueError, ImportError):  # a command, say, or a provider that has gone
            return None

    return found


def data_of(provider: Provider | None, delivery: Delivery) -> Any:  # noqa: ANN401  whatever the sender sent
    """Return the data of an event: as its provider reads it, or the JSON of its body; None where it can't be read."""
    if provider is None:
        return json_or_none(delivery.body)
    try:
        return provider.events(delivery)[0].data
    except (Rejected, IndexError):
        return None


def _or_json(provider: Provider) -> Provider:
    """Return a provider that has the JSON of what it can't read: it may have been read with options then."""

    def events(delivery: Delivery) -> list[Event]:
        with suppress(Rejected):
            if found := provider.events(delivery):
                return found
        return [Event(id="", type="", data=json_or_none(delivery.body))]

    return replace(provider, events=events)
