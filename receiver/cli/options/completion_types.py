"""Types of options and arguments that the shell completes; `receiver.cli.options.completion_values` finds it.

A completion must be quick and never talks: without a configuration or a server it offers nothing.
"""

from collections.abc import Callable
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completing(what: str) -> Complete:
    """Return the callback that click wants for what is offered of a kind."""

    def complete(
        context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from hookonce.receiver.cli.options.completion_values import offered  # only when the shell asks

        with suppress(Exception):
            values = offered(what, incomplete, context.params.get("source"))
            return [
                CompletionItem(value, help=text) for value, text in values if value.startswith(incomplete)
            ]
        return []

    return complete


SOURCES = _completing("sources")
PROVIDERS = _completing("providers")
PAUSABLE = _completing("pausable")
EVENTS = _completing("events")
SAMPLE_TYPES = _completing("sample types")
"""The types of the source that was named before."""
