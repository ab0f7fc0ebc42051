"""Tables on a terminal, as wide as it is: long cells are folded; where even that is too wide, each row is a block."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

import click

from hookonce.receiver.cli.output.colors import is_status, paint

_WHOLE = frozenset({"id", "event", "event id", "number", "url", "issue", "command"})
"""Columns of what is copied: never folded."""
_LEAST = 14
"""Characters to which a column may be narrowed."""
_GAP = "  "


def lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table."""
    widths = _fitting(columns, rows, width)
    if widths is None:
        for row in rows:
            yield from _block(columns, row, width)
        return
    yield click.style(_line([name.upper() for name in columns], widths), dim=True)
    for row in rows:
        folded = [wrap(text, wide) or [""] for text, wide in zip(row, widths, strict=True)]
        for number in range(max(map(len, folded))):
            yield _line([part[number] if number < len(part) else "" for part in folded], widths)


def _fitting(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return how wide each column is; None where the table does not fit."""
    widths = [max(map(len, (name, *cells))) for name, *cells in zip(columns, *rows, strict=True)]
    least = [
        wide if name in _WHOLE else min(wide, max(_LEAST, len(name)))
        for name, wide in zip(columns, widths, strict=True)
    ]
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while over > 0:
        spare, widest = max(
            (wide - small, number) for number, (wide, small) in enumerate(zip(widths, least, strict=True))
        )
        if not spare:
            return None
        taken = min(over, max(spare // 2, 1))
        widths[widest] -= taken
        over -= taken
    return widths


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        paint(text, text.ljust(wide)) if is_status(text) else text.ljust(wide)
        for text, wide in zip(cells, widths, strict=True)
    )
    return _GAP.join(padded).rstrip()


def _block(columns: Sequence[str], row: Sequence[str], width: int) -> Iterator[str]:
    """Yield a row by itself: its first cell, and a line for each other that holds something."""
    widest = max(map(len, columns[1:]), default=0)
    indent = " " * (widest + 2 * len(_GAP))
    yield click.style(row[0], bold=True)
    for name, text in zip(columns[1:], row[1:], strict=True):
        first, *more = wrap(text, max(width - len(indent), _LEAST)) or [""]
        if text not in {"", "-"}:
            yield f"{_GAP}{name:<{widest}}{_GAP}{paint(first) if is_status(first) else first}"
            yield from (indent + each for each in more)
