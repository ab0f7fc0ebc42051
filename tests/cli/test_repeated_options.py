"""An option that is typed twice adds up, or is refused: none is dropped in silence."""

import click
import pytest

from hookonce.receiver.cli import cli
from tests.support.for_each import for_each


def commands(group=cli, path=()):
    """All commands that are no groups, by the words that call them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        else:
            yield ((*path, name), found)


def options(*, multiple):
    """All options with a value, each with the words before it."""
    return [
        (*words, option.opts[-1])
        for words, command in commands()
        for option in command.params
        if isinstance(option, click.Option) and not option.is_flag and option.multiple is multiple
    ]


@for_each(lambda: [" ".join(words) for words in options(multiple=False)])
def test_option_that_is_typed_twice_is_refused(words):
    name = words.split()[-1]

    with pytest.raises(click.UsageError, match=f"{name} is given 2 times"):
        cli.make_context("hookonce", [*words.split(), "1", name, "1"])


def test_option_that_adds_up_is_not_refused():
    many = options(multiple=True)

    for words in many:
        cli.make_context("hookonce", [*words, "a", words[-1], "b"])
    assert many


def test_option_of_the_program_itself_is_refused_too():
    with pytest.raises(click.UsageError, match="--at is given 2 times"):
        cli.make_context("hookonce", ["--at", "a", "--at", "b", "stats"])
