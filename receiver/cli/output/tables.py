"""How listings are printed: a table for people, one JSON object per line for programs.

Most of what is listed was written by a sender, who may have put terminal escapes, bidirectional overrides or
markup into it. Whatever is not printable is shown escaped, and nothing is ever read as markup.
"""

import json
import shutil
import sys
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import IO, Any

import click

from hookonce.receiver.cli.output import terminal_tables
from hookonce.receiver.cli.output.printing import page, tell


def show(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str | None = None) -> None:
    """Print a table on a terminal, and aligned columns, never cut, anywhere else.

    Without a row it prints `empty`, if that is given, on stderr: that there is nothing, and what to do.
    """
    cells = [[cell(value) for value in row] for row in rows]
    if empty and not cells:
        tell(empty)
        return
    if sys.stdout.isatty():
        page("\n".join(terminal_tables.lines(columns, cells, shutil.get_terminal_size().columns)))
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for row in ([name.upper() for name in columns], *cells):
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        click.echo("  ".join(padded).rstrip())


def listed(
    columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str | None = None, *, as_json: bool
) -> None:
    """Print a table, or with `as_json` each row as one object on one line."""
    if not as_json:
        show(columns, rows, empty)
        return
    for row in rows:
        print_json(dict(zip(columns, row, strict=True)))


def print_json(document: Mapping[str, Any], file: IO[str] | None = None) -> None:
    """Print one object on one line of stdout, or of `file`; ASCII, so that no terminal or pipe can choke on it."""
    click.echo(json.dumps(document, default=_plain), file=file)


def cell(value: object) -> str:
    """Return a value as it stands in a table: a time in UTC, `-` for nothing."""
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clean(str(value))


def clean(text: str, *, lines: bool = False) -> str:
    """Escape what is not printable; with `lines`, line ends and tabs stay."""
    kept = "\n\t" if lines else ""
    return "".join(
        character if character.isprintable() or character in kept else _escaped(character)
        for character in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} can't be printed as JSON")
