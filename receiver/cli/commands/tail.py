"""`hookonce tail`: events as they come, and what becomes of them, until Ctrl-C."""

from collections.abc import Iterable
from contextlib import suppress
from time import sleep
from typing import Any, Final

import click

from hookonce.receiver.cli.connections import AWAY, at
from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options.event_options import AS_JSON, choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import cell, clean, print_json
from hookonce.receiver.desk.feeds.following import MAX_LAST, FollowRequest, follow_events
from hookonce.receiver.desk.rows import Event

_WIDTHS = (20, 12, 8)
_INTERVAL: Final = 0.5
"""Seconds between two looks, also for a database that was away."""
_INTERVAL_AT: Final = 2.0
"""Seconds between two looks at another inbox: each is a request of its API, under a token's limit."""


@click.command(epilog=examples("hookonce tail", "hookonce tail --status dead --json"))
@choosing
@click.option(
    "--last",
    default=10,
    show_default=True,
    type=click.IntRange(0, MAX_LAST),
    help="Begin with the last so many.",
)
@AS_JSON
def tail(last: int, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401  options
    """Print events as they come, and again whenever their status changes, until Ctrl-C.

    With --status only what takes on that status. Goes on by itself after the database was away. With `hookonce --at` it
    looks every two seconds.
    """
    given = given_of(options)
    position: dict[str, Any] = {"last": last}
    with suppress(KeyboardInterrupt):
        while True:
            try:
                with desk() as here:
                    while True:
                        found = here.ask(follow_events, asked=asking(FollowRequest, **given, **position))
                        position = {"after": found.after, "seen": found.seen}
                        _print(found.data, as_json=as_json)
                        sleep(_INTERVAL_AT if at() else _INTERVAL)
            except AWAY as error:
                if "after" not in position:
                    raise
                tell(f"the database is away ({type(error).__name__}); waiting for it")
                sleep(_INTERVAL)


def _print(rows: Iterable[Event], *, as_json: bool) -> None:
    for row in rows:
        if as_json:
            print_json(row.model_dump())
            continue
        when, source, status = (
            text.ljust(width)
            for text, width in zip(
                (cell(row.received_at), clean(row.source), row.status), _WIDTHS, strict=True
            )
        )
        told = f"{clean(row.type)}  {clean(row.event_id)}"
        click.echo(f"{when}  {source}  {paint(row.status, status)}  {row.id}  {told}")
