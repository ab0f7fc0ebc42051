"""Lines that a command prints; what is for people is folded to their terminal, between words and around commands."""

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO

import click

_WORD = re.compile(r"\s*(?:[^\s`]*`[^`]*`[^\s`]*|hookonce(?: [a-z]+)+ \d+\S*|\S+)")
"""A word, or a command to copy, with the space before it."""


def say(text: str) -> None:
    """Print a line of our own, with the time; its further lines are indented by as much."""
    put(f"{time.strftime('%H:%M:%S')}  {text}", " " * 10)


def echo(text: str, *, err: bool = False) -> None:
    """Print in colour where a terminal shows it, and nobody asked for none (https://no-color.org)."""
    click.echo(text, err=err, color=False if os.environ.get("NO_COLOR") else None)


def tell(text: str) -> None:
    """Print on stderr what there is to say besides a command's output."""
    echo(folded(text) if sys.stderr.isatty() else text, err=True)


def confirm(text: str, question: str) -> None:
    """Ask before something is done. Raises: `click.Abort` for a no, `click.UsageError` where nobody can answer."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"{text}; add --yes to {question} without being asked")
    click.confirm(f"{question}?", abort=True, err=True)


def put(text: str, indent: str = "  ") -> None:
    """Print a text on stdout."""
    echo(fitted(text, indent))


class _Terminal(StringIO):
    """A text of a command for a terminal, until it is shown as one page."""

    def isatty(self) -> bool:
        return True


@contextmanager
def paged() -> Iterator[None]:
    """Show what is printed on stdout within as one `page`."""
    if not sys.stdout.isatty():
        yield
        return
    printed = _Terminal()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        if text := printed.getvalue():
            page(text.removesuffix("\n"))


def page(text: str) -> None:
    """Print a text on stdout; a terminal shows one that is longer than its height in a pager."""
    is_whole = not isinstance(sys.stdout, _Terminal)
    if is_whole and sys.stdout.isatty() and text.count("\n") >= shutil.get_terminal_size().lines - 1:
        click.echo_via_pager(text, color=False if os.environ.get("NO_COLOR") else None)
    else:
        echo(text)


def fitted(text: str, indent: str = "  ") -> str:
    """Return a text as it fits into stdout: `folded` where that is a terminal."""
    return folded(text, indent) if sys.stdout.isatty() else text


def folded(text: str, indent: str = "  ") -> str:
    """Return a text in lines as wide as the terminal; what goes on from the line before is indented.

    What stands in backticks is to be copied, and stays on one line. Colours take no room.
    """
    width = shutil.get_terminal_size().columns
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width, indent))


def _parts(line: str, width: int, indent: str) -> list[str]:
    parts = [""]
    indent = " " * (len(line) - len(line.lstrip(" "))) + indent
    for word in _WORD.findall(line):
        if parts[-1].strip() and len(click.unstyle(parts[-1] + word)) > width:
            parts.append(indent + word.lstrip())
        else:
            parts[-1] += word
    return parts
