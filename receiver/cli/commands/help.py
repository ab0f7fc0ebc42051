"""`hookonce help`: all commands, and what the words mean that they use."""

import click

from hookonce.receiver.cli import COMMANDS, FURTHER, SHOWN, cli, write_groups
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import page
from hookonce.receiver.cli.output.tables import show
from hookonce.receiver.vocabulary import EXITS


@click.command("help")
@click.argument("word", required=False)
def help_(word: str | None) -> None:
    """List all commands, by what people come for; or explain WORD.

    WORD is a command, `exits` for the exit codes, a status (`held`), a reason of a rejection (`stale`), or a term.
    """
    context = click.get_current_context()
    if word is None:
        formatter = click.HelpFormatter(width=min(context.terminal_width or 80, 80))
        every = {title: sorted([*names, *FURTHER[title]]) for title, names in SHOWN.items()}
        write_groups(formatter, every)
        page(formatter.getvalue().rstrip("\n"))
    elif word == "exits":
        show(("code", "means"), [(int(code), EXITS[code.name]) for code in Exit])
    elif word in COMMANDS:
        command = cli.get_command(context, word)
        if command:
            page(command.get_help(click.Context(command, context.parent, word)))
    else:
        _explain(word)


def _explain(word: str) -> None:
    from hookonce.receiver.cli.desk import asking
    from hookonce.receiver.desk.words import WordPath, meanings

    for each in meanings(asking(WordPath, word=word)).data:
        click.echo(click.wrap_text(f"{each.word} ({each.kind}): {each.means}", 80, subsequent_indent="  "))
        if each.do:
            click.echo(click.wrap_text(each.do, 80, "  ", "  "))
