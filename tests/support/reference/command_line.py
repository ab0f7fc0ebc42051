"""docs/reference/cli.md: every command, from click's own tree."""

import inspect
import re

import click

from hookonce.receiver.cli import cli
from hookonce.receiver.cli.options import examples
from tests.support.reference.layout import code, head, table

PARAGRAPH = re.compile(r"\n\s*\n")
INTRODUCTION = """\
`hookonce COMMAND --help` says the same. Listings print tables, or with `--json` one object per line, on stdout;
everything else is on stderr. `hookonce completion bash` (or zsh, fish) prints what completes commands and names;
`hookonce man --dir DIR` writes these pages as manual pages.
[Exit codes](exits.md) · [environment variables](environment.md).
"""


def page():
    commands = sorted(_commands(cli, click.Context(cli, info_name="hookonce")))
    listed = "".join(f"- [`{path}`](#{_anchor(path)}): {_first(command)}\n" for path, command, _ in commands)
    sections = "".join(_section(path, command, context) for path, command, context in commands)
    return head("The command line", "click's own tree of commands", INTRODUCTION) + listed + sections


def _commands(group, context):
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _commands(command, inner)
        else:
            yield inner.command_path, command, inner


def _section(path, command, context):
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    options = [_option(each, context) for each in command.params if isinstance(each, click.Option)]
    said = "".join(f"\n{paragraph}\n" for paragraph in _paragraphs(command))
    if shown := "\n".join(examples.lines(command.epilog)):
        said += f"\n```text\n{shown}\n```\n"
    return f"\n## {path}\n\n```text\n{usage}\n```\n{said}" + (
        "\n" + table(("option", "means"), [option for option in options if option]) if any(options) else ""
    )


def _option(option, context):
    record = option.get_help_record(context)
    if record is None or option.name == "help":
        return None
    names, means = record
    return code(names), means.replace("  [", " [")


def _paragraphs(command):
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    for paragraph in PARAGRAPH.split(text):
        if paragraph.startswith("\b"):
            yield "```text\n" + inspect.cleandoc(paragraph.removeprefix("\b").strip("\n")) + "\n```"
        elif paragraph:
            yield " ".join(paragraph.split())


def _first(command):
    return command.get_short_help_str(limit=120)


def _anchor(path):
    return path.replace(" ", "-")
