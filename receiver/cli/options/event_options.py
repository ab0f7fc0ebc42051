"""The options that choose events: the same names and meanings for every command that takes many."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from hookonce.receiver.cli.options.completion_types import PROVIDERS, SOURCES
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.config.suggestions import not_one_of
from hookonce.receiver.desk.filters import FIELDS
from hookonce.receiver.ledger.states import EventStatus

_Command = TypeVar("_Command", bound=Callable[..., Any])

LIMIT = click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(0), help="At most so many; 0 = all."
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")


class Choice(click.Choice):  # type: ignore[type-arg]  # older versions of click take no argument
    """A choice that is refused in the words of the desk."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value. Raises: `click.BadParameter`."""
        if value not in self.choices:
            self.fail(not_one_of(value, self.choices), param, ctx)
        return value


_OTHERWISE: dict[str, dict[str, Any]] = {
    "source": {"shell_complete": SOURCES},
    "provider": {"shell_complete": PROVIDERS},
    "status": {"type": Choice([status.value for status in EventStatus])},
    "event_id": {"metavar": "PREFIX"},
    "issue": {"metavar": "ISSUE"},
    "since": {
        "type": SINCE,
        "help": "Only received then or later: 90s, 15m, 2h, 7d, today, yesterday, 2026-01-31.",
    },
    "until": {"type": SINCE, "help": "Only received before that; written like --since."},
}
"""Settings of click options, by the field of the filter, that its name and description do not give."""


def choosing(command: _Command) -> _Command:
    """Add an option for each field of a filter to a command; it takes them as keywords, for `given_of`."""
    for name, about in reversed(list(FIELDS.items())):
        flag = "id" if name == "event_id" else name.replace("_", "-")
        said = {"help": about[:1].upper() + about[1:].replace("`", "") + "."} | _OTHERWISE.get(name, {})
        command = click.option(f"--{flag}", name, **said)(command)
    return command


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a filter that were given."""
    return {name: options[name] for name in FIELDS if options[name] is not None}
