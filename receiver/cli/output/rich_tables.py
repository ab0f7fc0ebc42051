"""Tables on a terminal, folded to its width."""

import os
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text


def draw(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Draw a table on stdout; no cell is read as markup. With NO_COLOR nothing is bold either."""
    header = "none" if os.environ.get("NO_COLOR") else "table.header"
    table = Table(*columns, box=SIMPLE_HEAD, pad_edge=False, header_style=header)
    for row in rows:
        table.add_row(*(Text(text, overflow="fold") for text in row))
    Console().print(table)
