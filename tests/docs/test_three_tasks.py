"""The page that counts three tasks: its commands are those of the command line, its figures those of its lists."""

import itertools
import re
import shlex
from pathlib import Path

import click

from hookonce.receiver.cli import cli
from tests.support.for_each import for_each

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "three-tasks.md").read_text()
NONE = "\N{EN DASH}"
TABLE = [
    [cell.strip() for cell in line.strip("| ").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and line.rstrip(" |")[-1] in f"0123456789{NONE}"
]
COMMANDS = re.findall(r"`hookonce ([a-z][^`]*)`", PAGE)
TOOLS = ("Stripe CLI", "Hookdeck")


def sections():
    return PAGE.split("\n## ")[1:]


def counted(text):
    return [int(number) for found in re.findall(r"\(([\d, ]+)\)", text) for number in found.split(",")]


@for_each(COMMANDS)
def test_command_is_one_of_ours(command):
    group, words = cli, shlex.split(command)
    with click.Context(cli) as context:
        while isinstance(group, click.Group):
            name, *words = words
            group = group.get_command(context, name)
            assert group is not None, command
        group.make_parser(context).parse_args(words)


def test_every_task_has_a_row():
    titles = [section.splitlines()[0] for section in sections()]

    assert [row[0].split(":")[0].lower() for row in TABLE] == [
        title.split(":")[0].lower() for title in titles
    ]


@for_each(range(3))
def test_our_figure_is_the_length_of_the_list(task):
    steps = re.findall(r"^(\d+)\. ", sections()[task], re.MULTILINE)

    assert [int(step) for step in steps] == list(range(1, int(TABLE[task][1]) + 1))


@for_each(itertools.product(range(3), TOOLS))
def test_figure_of_another_tool_is_the_last_of_its_numbers(task, tool):
    figure = TABLE[task][2 + TOOLS.index(tool)]
    told = re.split(r"\*\*(Stripe CLI|Hookdeck)\.?\*\*", sections()[task])
    text = dict(zip(told[1::2], told[2::2], strict=True)).get(tool, "")

    assert counted(text) == (list(range(1, int(figure) + 1)) if figure != NONE else [])
