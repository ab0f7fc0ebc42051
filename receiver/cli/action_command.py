"""A command that is made of an action: its fields are the arguments and options, its answer is what is printed.

What a command says otherwise than its action is given: which columns a listing has, what is said where there is
nothing, or another option `instead` of a field, as `--all` is for the state of alerts.
"""

from collections.abc import Callable, Mapping
from typing import Any

import click

from hookonce.receiver.cli.desk import desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import doubt, require_span
from hookonce.receiver.cli.options.time_option import SINCE
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import cell, print_json, show
from hookonce.receiver.desk.answers import facts, tables
from hookonce.receiver.desk.arguments import Field, fields, read
from hookonce.receiver.desk.models import PAGE_SIZE, ResponseModel
from hookonce.receiver.desk.registry import Action, Asks

Column = str | Callable[[Any], object]
"""The field of a row that stands in a column, or what is made of the row."""
_COMPLETED = {"source": completion_types.SOURCES, "event": completion_types.EVENTS}


def listing(
    action: Action[Any],
    columns: Mapping[str, Column],
    empty: str,
    *,
    document: Callable[[Any], Mapping[str, Any]] = ResponseModel.model_dump,
    keeps: Callable[[Any], object] = lambda _: True,
    **said: Any,  # noqa: ANN401  what `made` takes
) -> click.Command:
    """Make the command that lists what an action answers: a table, or with --json a line for each row's document.

    Rows that it does not keep are left out.
    """

    def run(here: Asks, given: Mapping[str, Any], *, as_json: bool) -> None:
        found = [row for row in _rows(here, action, given) if keeps(row)]
        if as_json:
            for row in found:
                print_json(document(row))
            return
        show(list(columns), [[_value(row, each) for each in columns.values()] for row in found], empty=empty)
        if not found:
            doubt(given.get("source"))

    return made(action, run, **said)


def facts_of(
    action: Action[Any],
    empty: str = "there is nothing to tell",
    **said: Any,  # noqa: ANN401  what `made` takes
) -> click.Command:
    """Make the command that shows one answer: its facts a line each, and its lists as tables; `empty` without any."""

    def run(here: Asks, given: Mapping[str, Any], *, as_json: bool) -> None:
        answer = here.ask(action, **read(action, given))
        if as_json:
            print_json(answer.model_dump())
        else:
            print_answer(answer, empty)

    return made(action, run, **said)


def made(
    action: Action[Any],
    run: Callable[..., None],
    *,
    name: str | None = None,
    about: str = "",
    instead: Mapping[str, click.Parameter] | None = None,
) -> click.Command:
    """Make a command of the fields of an action, which are given to `run` as they were typed."""
    params = [(instead or {}).get(each.name) or _parameter(each) for each in fields(action)]
    params.append(click.Option(["--json", "as_json"], is_flag=True, help="One JSON object per line."))

    def callback(*, as_json: bool, **given: Any) -> None:  # noqa: ANN401  the fields
        require_span(given.get("since"), given.get("until"))
        with desk() as here:
            run(here, given, as_json=as_json)

    about = about or action.about
    first = about.partition("\n")[0].partition(". ")[0].removesuffix(".") + "."
    return click.Command(name, params=params, callback=callback, help=about, short_help=first)


def print_answer(answer: ResponseModel, empty: str) -> None:
    """Print what is known of one thing."""
    known, listed = facts(answer), [table for table in tables(answer) if table.rows]
    if not known and not listed:
        tell(empty)
    widest = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        click.echo(f"{name:<{widest}}  {cell(value)}")
    for table in listed:
        click.echo(f"\n{table.name}")
        show(table.columns, table.rows)


def _rows(here: Asks, action: Action[Any], given: Mapping[str, Any]) -> list[Any]:
    """Return the rows of a listing, page by page where it has a limit; 0 gives all."""
    if "limit" not in given:
        return list(here.ask(action, **read(action, given)).data)
    found: list[Any] = []
    limit, cursor = given["limit"], None
    while True:
        size = min(limit - len(found), PAGE_SIZE) if limit else PAGE_SIZE
        page = here.ask(action, **read(action, {**given, "limit": size, "cursor": cursor}))
        found += page.data
        cursor = page.next
        if cursor is None or (limit and len(found) >= limit):
            return found


def _value(row: object, column: Column) -> object:
    return getattr(row, column) if isinstance(column, str) else column(row)


def _parameter(field: Field) -> click.Parameter:
    if field.role == "which":
        return click.Argument(
            [field.name], metavar=field.name.upper(), shell_complete=_COMPLETED.get(field.name)
        )
    more: dict[str, Any] = {}
    about = field.about
    if field.kind == "choice":
        more |= {"type": click.Choice(field.choices), "metavar": field.name.upper()}
        about = f"{about}: {', '.join(field.choices)}"
    elif field.kind == "time":
        more["type"] = SINCE
    elif field.kind == "flag":
        more["is_flag"] = True
    elif field.name == "limit":
        more |= {"type": click.IntRange(0), "default": field.default, "show_default": True}
    return click.Option(
        [f"--{field.name.replace('_', '-')}"],
        help=about[:1].upper() + about[1:] + "." * bool(about),
        required=field.is_required,
        shell_complete=_COMPLETED.get(field.name),
        **more,
    )
