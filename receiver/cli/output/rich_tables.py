"""Tables on a terminal, folded to its width."""

import os
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hookonce.receiver.cli.output.colors import is_status, paint

_WHOLE = ("id", "event", "event id", "number", "url")
"""Columns of what is copied."""
_LONGEST = 40
"""Characters; what is longer is folded all the same, or it would be cut."""


def draw(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Draw a table on stdout; no cell is read as markup, and ids stay whole. With NO_COLOR nothing is bold either."""
    is_plain = bool(os.environ.get("NO_COLOR"))
    cells = [list(row) for row in rows]
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="none" if is_plain else "table.header")
    for number, name in enumerate(columns):
        longest = max((len(row[number]) for row in cells), default=0)
        table.add_column(name, no_wrap=name in _WHOLE and longest <= _LONGEST)
    for row in cells:
        table.add_row(
            *(
                Text(text, overflow="fold")
                if is_plain or not is_status(text)
                else Text.from_ansi(paint(text))
                for text in row
            )
        )
    Console().print(table)
