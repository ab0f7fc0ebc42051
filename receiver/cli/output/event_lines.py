"""Events as a terminal shows them: a line each, made for 80 columns. What is too long gives way; ids never do."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import click

from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.listed_events import ListedEvent

_LEAST = {"source": 6, "type": 12}
"""Characters that are left of what is cut."""
_LONGEST_ID = 76
_GAP = "  "
_HEADS = ("ID", "STATUS", "RECEIVED", "SOURCE", "TYPE", "EVENT ID")


def lines(
    events: Sequence[ListedEvent],
    notes: Mapping[int, Sequence[str]],
    width: int,
    now: datetime,
) -> Iterator[str]:
    """Yield a heading, a line for each event, and below it the notes of its ledger id."""
    rows = [
        (
            str(event.id),
            event.status,
            ago(event.received_at, now),
            clean(event.source),
            clean(event.type),
            _id(event.event_id) + (f" ×{event.deliveries}" if event.deliveries > 1 else ""),  # noqa: RUF001
        )
        for event in events
    ]
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    apart = _fit(widths, width)
    yield click.style(_line(_HEADS[:5] if apart else _HEADS, widths).rstrip(), dim=True)
    for event, row in zip(events, rows, strict=True):
        number, status, *rest = row[:5] if apart else row
        head = f"{number:>{widths[0]}}{_GAP}{paint(status, f'{status:<{widths[1]}}')}{_GAP}"
        yield (head + _line(rest, widths[2:])).rstrip()
        indent = " " * (widths[0] + len(_GAP))
        if apart:
            yield indent + row[5]
        for note in notes.get(event.id, ()):
            yield paint(event.status, _shortened(indent + clean(note), width))


def _id(text: str) -> str:
    """Return an id that can be copied, in a line; the middle of one that is longer than a line is left out."""
    shown = clean(text)
    return shown if len(shown) <= _LONGEST_ID else f"{shown[:20]}…{shown[-12:]}"


def _fit(widths: list[int], width: int) -> bool:
    """Make source and type narrower until a line fits; return whether the sender's id needs a line of its own."""
    own = sum(widths) + len(_GAP) * (len(widths) - 1)
    can_give = max(widths[3] - _LEAST["source"], 0) + max(widths[4] - _LEAST["type"], 0)
    apart = own - can_give > width
    over = own - (widths[5] + len(_GAP) if apart else 0) - width
    for column, least in ((4, _LEAST["type"]), (3, _LEAST["source"])):
        taken = min(max(over, 0), max(widths[column] - least, 0))
        widths[column] -= taken
        over -= taken
    return apart


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return _GAP.join(_shortened(text, wide).ljust(wide) for text, wide in zip(cells, widths, strict=False))


def _shortened(text: str, wide: int) -> str:
    return text if len(text) <= wide else text[: wide - 1] + "…"


def cut(text: str, width: int, **style: object) -> str:
    """Return one line of at most that width, in a style."""
    return click.style(_shortened(text, width), **style)  # type: ignore[arg-type]
