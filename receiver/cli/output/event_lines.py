"""Events as a terminal shows them: a line each, made for 80 columns; its type and cause before the sender's id."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import click

from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.listed_events import ListedEvent

_LEAST = (("WHY", 32), ("EVENT ID", 31), ("TYPE", 12), ("SOURCE", 6), ("EVENT ID", 13))
"""Characters that are left of what is cut, in this order."""
_GAP = "  "


def lines(
    events: Sequence[ListedEvent],
    notes: Mapping[int, Sequence[str]],
    width: int,
    now: datetime,
) -> Iterator[str]:
    """Yield a heading and a line for each event. Where some have notes, by ledger id, the sender's id may give way."""
    columns: dict[str, Sequence[str]] = {
        "ID": [str(event.id) for event in events],
        "STATUS": [event.status for event in events],
        "RECEIVED": [ago(event.received_at, now) for event in events],
        "SOURCE": [clean(event.source) for event in events],
        "TYPE": [clean(event.type) for event in events],
        "WHY": [clean("; ".join(notes.get(event.id, ()))) for event in events],
        "EVENT ID": [clean(event.event_id) + _times(event.deliveries) for event in events],
    }
    del columns["STATUS" if any(columns["WHY"]) else "WHY"]  # those that say why are listed by their status
    widths = _fitting(columns, width)
    if widths is None:
        del columns["EVENT ID"]
        widths = _fitting(columns, width) or {}
    yield click.style(_GAP.join(name.ljust(wide) for name, wide in widths.items()).rstrip(), dim=True)
    for number, event in enumerate(events):
        cells = [_cell(name, columns[name][number], wide) for name, wide in widths.items()]
        coloured = int("STATUS" in widths)
        cells[coloured] = paint(event.status, cells[coloured])
        yield _GAP.join(cells).rstrip()


def _times(deliveries: int) -> str:
    return f" ×{deliveries}" if deliveries > 1 else ""  # noqa: RUF001


def _fitting(columns: Mapping[str, Sequence[str]], width: int) -> dict[str, int] | None:
    """Return how wide each column is; None where that of the cause leaves no room for the sender's id."""
    widths = {name: max(map(len, (name, *cells))) for name, cells in columns.items()}
    over = sum(widths.values()) + len(_GAP) * (len(widths) - 1) - width
    for name, least in _LEAST:
        taken = min(max(over, 0), max(widths.get(name, 0) - least, 0))
        if taken:
            widths[name] -= taken
            over -= taken
    return None if over > 0 and {"WHY", "EVENT ID"} <= widths.keys() else widths


def _cell(name: str, text: str, wide: int) -> str:
    if name == "ID":
        return text.rjust(wide)
    if name in {"SOURCE", "EVENT ID"} and len(text) > wide:  # their ends tell them apart
        end = wide // 3
        return f"{text[: wide - end - 1]}…{text[-end:]}"
    return _shortened(text, wide).ljust(wide)


def _shortened(text: str, wide: int) -> str:
    return text if len(text) <= wide else text[: wide - 1] + "…"


def cut(text: str, **style: object) -> str:
    """Return one line in a style, on a terminal no wider than that: nothing else has a width."""
    fits = _shortened(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text
    return click.style(fits, **style)  # type: ignore[arg-type]
