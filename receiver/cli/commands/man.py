"""`hookonce man`: the manual pages, made of what `--help` says; `hookonce exits`: what the exit codes mean."""

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import click

from hookonce.receiver.cli.options import examples
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.vocabulary import EXITS, VARIABLES


@click.command()
@click.option(
    "--dir",
    "folder",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the pages go, like /usr/local/share/man/man1.",
)
@click.pass_context
def man(context: click.Context, folder: Path) -> None:
    """Write the manual pages, one for each command: hookonce.1, hookonce-events-list.1 and so on."""
    root = click.Context(context.find_root().command, info_name="hookonce")
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for each in contexts(root):
        path = folder / f"{_name(each)}.1"
        path.write_text(page(each), encoding="utf-8")
        written += 1
    tell(f"{written} pages in {folder}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def exits(*, as_json: bool) -> None:
    """List the exit codes of all commands and what they mean."""
    if as_json:
        for code in Exit:
            print_json({"code": int(code), "means": EXITS[code.name]})
    else:
        show(("code", "means"), [(int(code), EXITS[code.name]) for code in Exit])


def contexts(context: click.Context) -> Iterator[click.Context]:
    """Yield the contexts of a command and of all below it."""
    yield context
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from contexts(click.Context(child, info_name=name, parent=context))


def page(context: click.Context) -> str:
    """Write the page of one command, in roff."""
    command, name = context.command, _name(context)
    summary = command.get_short_help_str(limit=200).rstrip(".")
    lines = [f'.TH "{name.upper()}" "1" "" "hookonce {version("hookonce")}" "hookonce"']
    lines += [".SH NAME", f"{_text(name)} \\- {_text(summary)}"]
    usage = " ".join(command.collect_usage_pieces(context))
    lines += [".SH SYNOPSIS", f".B {_text(context.command_path)}", _text(usage)]
    lines += [".SH DESCRIPTION"]
    paragraphs = [_text(" ".join(paragraph.split())) for paragraph in (command.help or "").split("\n\n")]
    lines.append("\n.PP\n".join(paragraphs))
    lines += _examples(command)
    lines += _listed("OPTIONS", _options(context))
    if isinstance(command, click.Group):
        lines += _listed("COMMANDS", _commands(command, context))
    if context.parent is None:
        lines += _listed("ENVIRONMENT", VARIABLES.items())
    lines += _listed("EXIT STATUS", ((str(int(code)), EXITS[code.name]) for code in Exit))
    if context.parent is not None:
        lines += [".SH SEE ALSO", f".BR {_name(context.parent)} (1)"]
    return "\n".join(lines) + "\n"


def _examples(command: click.Command) -> list[str]:
    shown = [_text(line) for line in examples.lines(command.epilog)]
    return [".SH EXAMPLES", *(line for each in shown for line in (".PP", each))] if shown else []


def _options(context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record:
            yield record


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield name, command.get_short_help_str(limit=200)


def _listed(title: str, items: Iterable[tuple[str, str]]) -> list[str]:
    lines = [f".SH {title}"]
    for term, text in items:
        lines += [".TP", f".B {_text(term)}", _text(text)] if text else []
    return lines if len(lines) > 1 else []


def _name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _text(text: str) -> str:
    """Write text so that roff takes none of it for its own: backslashes, hyphens, a dot that begins a line."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
