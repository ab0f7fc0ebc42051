"""What the shell may complete, as options and arguments say it; `receiver.cli.offered` finds it.

A completion must be quick and never talks: without a configuration or a server it offers nothing.
"""

import importlib
from collections.abc import Callable
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

_OFFERED = "receiver.cli.offered"
"""Imported when the shell asks: every other start is sooner without it."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completing(what: str) -> Complete:
    """Make the callback that click wants for what is offered of a kind."""

    def complete(
        _context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        with suppress(Exception):
            said = importlib.import_module(_OFFERED).offered(what, incomplete)
            return [CompletionItem(value, help=text) for value, text in said if value.startswith(incomplete)]
        return []

    return complete


SOURCES = _completing("sources")
PROVIDERS = _completing("providers")
PAUSABLE = _completing("pausable")
EVENTS = _completing("events")
