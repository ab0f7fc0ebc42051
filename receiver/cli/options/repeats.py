"""Refuses an option that is typed twice: click takes the last of them, and a filter would be dropped in silence."""

from collections import Counter
from collections.abc import Sequence

import click


def refuse_repeats(command: click.Command, context: click.Context, arguments: Sequence[str]) -> None:
    """Look through what is typed for a command and its subcommands. Raises: `click.UsageError` naming the option."""
    _, rest, typed = command.make_parser(context).parse_args(args=list(arguments))
    for option, times in Counter(typed).items():
        if times > 1 and isinstance(option, click.Option) and not (option.multiple or option.is_flag):
            raise click.UsageError(
                f"{option.opts[-1]} is given {times} times, and one of them would count; give it once",
                context,
            )
    if isinstance(command, click.Group) and rest:
        found = command.get_command(context, rest[0])
        if found is not None:
            inner = click.Context(found, parent=context, info_name=rest[0], **found.context_settings)
            refuse_repeats(found, inner, rest[1:])
