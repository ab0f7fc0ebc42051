"""A command that is made of an action: its fields are the arguments and options, its answer is what is printed.

A command is given what its action does not say: which columns a listing has, what is told where there is nothing, a
field that is `preset`, or another option `instead` of a field, as `--all` is for the state of alerts. A command that
changes much is `planned`: it shows its plan first.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

import click

from hookonce.receiver.cli.desk import asked_of, desk, pages
from hookonce.receiver.cli.options.event_options import COMPLETED, Choice, typed
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import paged, put, tell
from hookonce.receiver.cli.output.tables import cell, clean, print_json, show
from hookonce.receiver.cli.plans import carried_out
from hookonce.receiver.desk.forms import Field, facts, fields, tables
from hookonce.receiver.desk.models import ResponseModel
from hookonce.receiver.desk.registry import Action, Asks

Column = str | Callable[[Any], object]
"""The field of a row that stands in a column, or what is made of the row."""


class Noun(click.Command):
    """Lists what it is called by, as a group's `list` does: `workers` and `workers list` are the same."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:  # noqa: D102
        return super().parse_args(ctx, args[1:] if args[:1] == ["list"] else args)


def listing(  # noqa: PLR0913  all but three by keyword
    action: Action[Any],
    columns: Mapping[str, Column] | str,
    empty: str,
    *,
    rows_of: Callable[[Any], Iterable[Any]] = lambda row: (row,),
    document: Callable[[Any], Mapping[str, Any]] = ResponseModel.model_dump,
    cut: str = "",
    then: Callable[[Any], None] | None = None,
    **said: Any,  # noqa: ANN401  what `made` takes
) -> click.Command:
    """Make the command that lists what an action answers: a table, or with --json a line for each row's document.

    `columns` written as one text are fields under their own names.
    `rows_of` what the action lists are shown, maybe none; `cut` is told, with its limit, of what is not complete, and
    `then` prints what else the last page has to say.
    """
    shown = (
        {name.replace("_", " "): name for name in columns.split()} if isinstance(columns, str) else columns
    )

    def run(here: Asks, given: Mapping[str, Any], *, as_json: bool) -> None:
        found = list(pages(here, action, given))
        rows = [row for page in found for each in page.data for row in rows_of(each)]
        if as_json:
            for row in rows:
                print_json(document(row))
            return
        show(list(shown), [[_value(row, each) for each in shown.values()] for row in rows], empty=empty)
        if not rows and (hint := getattr(found[-1], "hint", None)):
            tell(clean(hint))
        if not getattr(found[-1], "is_complete", True):
            tell(cut.format(limit=len(rows)))
        if then:
            then(found[-1])

    return made(action, run, **said)


def done(
    action: Action[Any],
    told: str | Callable[[Any], str],
    **said: Any,  # noqa: ANN401  what `made` takes
) -> click.Command:
    """Make the command that does something and tells so: a text with its fields, or what its answer comes to."""

    def run(here: Asks, given: Mapping[str, Any], *, as_json: bool) -> None:  # noqa: ARG001  every command's
        answer = here.ask(action, **asked_of(action, given))
        fields_of = {name: clean(str(value)) for name, value in given.items()}
        tell(told.format(**fields_of) if isinstance(told, str) else told(answer))

    return made(action, run, has_json=False, **said)


def planned(
    action: Action[Any],
    show_answer: Callable[[Any], None],
    *,
    then: Callable[[Asks, Mapping[str, Any], Any], object],
    ask: Callable[[Any], None] | None = None,
    left_alone: Collection[str] = (),
    **said: Any,  # noqa: ANN401  what `made` takes
) -> click.Command:
    """Make the command that shows the plan of an action, does what it shows, and shows what was done.

    `ask` asks in between what can't be undone, unless the command has the option `plans.YES` and it is given. `then`
    tells the rest, and returns whether something was left: that is the exit code 3. For `left_alone` see `carried_out`.
    """

    def run(here: Asks, given: Mapping[str, Any], *, as_json: bool) -> None:
        models: dict[str, Any] = asked_of(action, {**given, "dry_run": None})
        how: dict[str, Any] = {"dry_run": given["dry_run"], "as_json": as_json, "left_alone": left_alone}
        found = carried_out(here, action, show_answer, ask=None if given.get("yes") else ask, **how, **models)
        if then(here, models, found):
            sys.exit(Exit.PARTIAL)

    return made(action, run, **said)


def shown(
    action: Action[Any],
    show_answer: Callable[[Any], None],
    **said: Any,  # noqa: ANN401  what `made` takes
) -> click.Command:
    """Make the command that shows one answer."""

    def run(here: Asks, given: Mapping[str, Any], *, as_json: bool) -> None:
        answer = here.ask(action, **asked_of(action, given))
        if as_json:
            print_json(answer.model_dump())
        else:
            show_answer(answer)

    return made(action, run, **said)


def facts_of(
    action: Action[Any],
    empty: str = "there is nothing to tell",
    **said: Any,  # noqa: ANN401  what `made` takes
) -> click.Command:
    """Make the command that shows one answer: its facts a line each, and its lists as tables; `empty` without any."""
    return shown(action, partial(print_answer, empty=empty), **said)


def made(  # noqa: PLR0913  all but two by keyword
    action: Action[Any],
    run: Callable[..., None],
    *,
    name: str | None = None,
    about: str = "",
    has_json: bool = True,
    preset: Mapping[str, Any] | None = None,
    instead: Mapping[str, click.Parameter | None] | None = None,
    epilog: str | None = None,
) -> click.Command:
    """Make a command of the fields of an action, which are given to `run` as they were typed.

    Fields that are `preset` are no options, nor are those for which there is None `instead`.
    """
    preset = preset or {}
    instead = {**dict.fromkeys(preset), **(instead or {})}
    every = [instead[each.name] if each.name in instead else _parameter(each) for each in fields(action)]
    params = [each for each in every if each is not None]
    if has_json:
        params.append(click.Option(["--json", "as_json"], is_flag=True, help="One JSON object per line."))

    def callback(*, as_json: bool = False, **given: Any) -> None:  # noqa: ANN401  the fields
        with paged(), desk() as here:
            run(here, {**given, **preset}, as_json=as_json)

    about = about or action.about
    first = about.partition("\n")[0].partition(". ")[0].removesuffix(".") + "."
    kind = click.Command if name else Noun
    return kind(name, params=params, callback=callback, help=about, short_help=first, epilog=epilog)


def print_answer(answer: ResponseModel, empty: str) -> None:
    """Print what is known of one thing."""
    known, listed = facts(answer), [table for table in tables(answer) if table.rows]
    if not known and not listed:
        tell(empty)
    widest = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        put(f"{name:<{widest}}  {cell(value)}", " " * (widest + 2))
    for table in listed:
        click.echo(f"\n{table.name}")
        show(table.columns, table.rows)


def _value(row: object, column: Column) -> object:
    return getattr(row, column) if isinstance(column, str) else column(row)


def _parameter(field: Field) -> click.Parameter:
    complete = COMPLETED.get(field.name)
    if field.role == "which":
        return click.Argument([field.name], metavar=field.name.upper(), shell_complete=complete)
    if field.name == "events":
        return click.Argument([field.name], metavar="ID…", nargs=-1, shell_complete=complete)
    more: dict[str, Any] = {}
    about = field.about
    if field.kind == "choice":
        more |= {"type": Choice(field.choices), "metavar": field.name.upper()}
        about = f"{about}: {', '.join(field.choices)}".removeprefix(": ")
    elif field.kind == "time":
        more["type"] = SINCE
    elif field.kind == "flag":
        more["is_flag"] = True
    elif field.name == "limit":
        more["type"] = click.IntRange(0)
    if field.kind != "flag" and field.default is not None:
        more |= {"default": field.default, "show_default": True}
    names, settings = typed(field.name, about, required=field.is_required, **more)
    return click.Option(names, **settings)
