"""The options that choose events, and all others that stand for a field: the same names and meanings everywhere."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from hookonce.receiver.cli.options.completion_types import EVENTS, PROVIDERS, SOURCES
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.desk.filters import FIELDS
from hookonce.receiver.desk.refusals import not_one_of
from hookonce.receiver.ledger.states import EventStatus

_Command = TypeVar("_Command", bound=Callable[..., Any])

AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")


class Choice(click.Choice):  # type: ignore[type-arg]  # older versions of click take no argument
    """A choice that is refused in the words of the desk."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value. Raises: `click.BadParameter`."""
        if value not in self.choices:
            self.fail(not_one_of(value, self.choices), param, ctx)
        return value


COMPLETED = {"source": SOURCES, "provider": PROVIDERS, "event": EVENTS, "events": EVENTS}
"""Fields that a shell completes."""
_FLAGS = {"event_id": "--id", "text": "--body"}
_OTHERWISE: dict[str, dict[str, Any]] = {
    "dry_run": {"help": "Only show the plan: nothing is changed."},
    "event_id": {"metavar": "PREFIX"},
    "issue": {"metavar": "ISSUE"},
    "since": {"help": "Only from then on: 90s, 15m, 2h, 7d, today, yesterday, 2026-01-31."},
    "until": {"help": "Only before that; written like --since."},
    "where": {"metavar": "$.PATH=VALUE", "help": "Only with this value there in the body."},
}
"""Settings of click options, by field, that its name and description do not give."""


def typed(name: str, about: str, **settings: Any) -> tuple[list[str], dict[str, Any]]:  # noqa: ANN401  click's
    """Return how the option of a field is written, and the settings that click takes."""
    said = {"help": about[:1].upper() + about[1:].replace("`", "") + "." * bool(about)}
    settings = said | {"shell_complete": COMPLETED.get(name)} | settings | _OTHERWISE.get(name, {})
    return [_FLAGS.get(name, f"--{name.replace('_', '-')}"), name], settings


def choosing(command: _Command) -> _Command:
    """Add an option for each field of a filter to a command; it takes them as keywords, for `given_of`."""
    types = {"since": SINCE, "until": SINCE, "status": Choice([status.value for status in EventStatus])}
    for name, about in reversed(list(FIELDS.items())):
        names, settings = typed(name, about, type=types.get(name))
        command = click.option(*names, **settings)(command)
    return command


def given_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a filter that were given."""
    return {name: options[name] for name in FIELDS if options[name] is not None}
