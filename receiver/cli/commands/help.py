"""`hookonce help`: all commands."""

import click

from hookonce.receiver.cli import FURTHER, SHOWN, write_groups


@click.command("help")
def help_() -> None:
    """List all commands, by what people come for."""
    formatter = click.HelpFormatter(width=min(click.get_current_context().terminal_width or 80, 80))
    every = {title: sorted([*names, *FURTHER[title]]) for title, names in SHOWN.items()}
    write_groups(formatter, every)
    click.echo(formatter.getvalue().rstrip("\n"))
