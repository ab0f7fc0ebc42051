"""`hookonce handlers`: what workers say they can do, and how it fares."""

from typing import Any, Final

import click

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.pauses import Handler, list_handlers

_PAUSED_BY: Final = {None: "", "person": " (paused)", "breaker": " (stopped by its breaker)"}


Row = tuple[Handler, Any]
"""A handler, and one pattern that it takes."""


def _batch(row: Row) -> object:
    handler, taken = row
    size = handler.batches.size if handler.batches else None
    return f"{size} of {taken.batch}" if size and taken.batch else taken.batch or ""


def _took(row: Row) -> str | None:
    """Say within what time half of the runs ended, and 99 of a hundred."""
    half, most = row[0].p50_seconds, row[0].p99_seconds
    return None if half is None or most is None else f"{_span(half)}, p99 {_span(most)}"


def _span(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


handlers = click.Group(
    commands=[
        listing(
            list_handlers,
            {
                "handler": lambda row: row[0].name + _PAUSED_BY[row[0].paused_by],
                "dead": lambda row: row[0].dead,
                "open": lambda row: row[0].open,
                "done": lambda row: row[0].done,
                "took": _took,
                "last run": lambda row: ago(row[0].latest_run),
                "takes": lambda row: f"{row[1].place} {row[1].pattern}",
                "limits": lambda row: ", ".join(row[1].limits.words()),
                "attempts": lambda row: row[1].attempts,
                "batch": _batch,
                "seen": lambda row: ago(row[1].announced_at),
            },
            "no worker has registered a handler; `hookonce init` writes one, and `hookonce dev` runs it",
            rows_of=lambda handler: [(handler, each) for each in handler.takes],
            document=lambda row: row[0].model_dump(exclude={"takes"}) | row[1].model_dump(),
            name="list",
            epilog=examples("hookonce handlers list", "hookonce handlers list --json"),
            about="""List handlers: what they take, their limits, how their runs ended.

            Workers register their handlers at their start and every few minutes. A handler that no worker has any more
            is listed for another day.
            """,
        )
    ],
    help="List the handlers that workers know.",
)
