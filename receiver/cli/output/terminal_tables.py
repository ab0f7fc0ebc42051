"""Tables on a terminal, as wide as it is: long cells are folded; where even that is too wide, each row is a block.

A table that is longer than a screen by then has one line for each row: cells are cut, and the last columns left out.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import compress
from textwrap import wrap

import click

from hookonce.receiver.cli.output.colors import is_status, paint

_WHOLE = frozenset({"id", "event", "event id", "number", "url", "issue", "command"})
"""Columns of what is copied: never folded."""
_TIME = re.compile(r"20\d\d-[-0-9: ]+Z")
_LEAST, _LEAST_CUT = 14, 12
"""Characters to which a column may be narrowed, whose cells are folded or cut."""
_SCREEN = 22
"""Lines that a screen holds beside the prompt."""
_GAP = "  "


def lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the lines of a table."""
    is_held = [not rows or any(row[n] not in {"", "-"} for row in rows) for n in range(len(columns))]
    columns, *rows = [list(compress(row, is_held)) for row in (columns, *rows)]
    widths = _fitting(columns, rows, width)
    if widths is None:
        whole = [line for row in rows for line in _block(columns, row, width)]
    else:
        whole = [_heading(columns, widths), *(line for row in rows for line in _folded(row, widths))]
    return whole if len(whole) <= _SCREEN else _one_line_each(columns, rows, width)


def _one_line_each(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    shown = len(columns)
    while True:
        widths = _fitting(columns[:shown], [row[:shown] for row in rows], width, _LEAST_CUT)
        if widths or shown == 1:
            break
        shown -= 1
    widths = widths or [width]
    made = [_heading(columns[:shown], widths)]
    for row in rows:
        cells = zip(row[:shown], widths, strict=True)
        made.append(
            _line([text if len(text) <= wide else f"{text[: wide - 1]}…" for text, wide in cells], widths)
        )
    left_out = ", ".join(columns[shown:])
    return [*made, click.style(f"a wider terminal shows {left_out}, too", dim=True)] if left_out else made


def _heading(columns: Sequence[str], widths: Sequence[int]) -> str:
    return click.style(_line([name.upper() for name in columns], widths), dim=True)


def _folded(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    folded = [wrap(text, wide) or [""] for text, wide in zip(row, widths, strict=True)]
    for number in range(max(map(len, folded))):
        yield _line([part[number] if number < len(part) else "" for part in folded], widths)


def _fitting(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, to: int = _LEAST
) -> list[int] | None:
    """Return how wide each column is, narrowed down `to` that; None where the table does not fit."""
    table = list(zip(columns, *rows, strict=True))
    widths = [max(map(len, cells)) for cells in table]
    is_whole = [
        name in _WHOLE or (to < _LEAST and any(map(_TIME.fullmatch, cells))) for name, *cells in table
    ]
    least = [
        wide if whole else min(wide, max(to, len(name)))
        for name, wide, whole in zip(columns, widths, is_whole, strict=True)
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
