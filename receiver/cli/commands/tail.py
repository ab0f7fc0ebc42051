"""`hookonce tail`: events as they come, and what becomes of them, until Ctrl-C."""

from collections.abc import Iterable
from dataclasses import asdict
from time import sleep
from typing import Any, NoReturn

import click
import psycopg

from hookonce.receiver.cli.connections import at, ledger
from hookonce.receiver.cli.options.event_options import AS_JSON, choosing, given_of
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import cell, clean, print_json
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.queries import events
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.queries.tail import Tail

_WIDTHS = (20, 12, 8)
_RETRY_INTERVAL = 0.5  # seconds before the database is tried again


@click.command(epilog=examples("hookonce tail", "hookonce tail --status dead --json"))
@choosing
@click.option(
    "--last", default=10, show_default=True, type=click.IntRange(0), help="Begin with the last so many."
)
@click.option(
    "--every",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0.05, 60),
    help="Seconds between two looks.",
)
@AS_JSON
def tail(last: int, every: float, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401  options
    """Print events as they come, and again whenever their status changes, until Ctrl-C.

    With --status only what takes on that status. Goes on by itself after the database was away. With `hookonce --at` it
    looks every two seconds, among the newest 200 events.
    """
    wanted = Filter(**given_of(options))
    following: Tail | None = None
    try:
        if at():
            _follow_there(wanted, last, every, as_json=as_json)
        while True:
            try:
                with ledger() as connection:
                    following = following or _begin(connection, wanted, last, as_json=as_json)
                    while True:
                        _print(following.look(connection), as_json=as_json)
                        sleep(every)
            except (psycopg.OperationalError, LedgerUnavailable) as error:
                if following is None:
                    raise
                tell(f"the database is away ({type(error).__name__}); waiting for it")
                sleep(_RETRY_INTERVAL)
    except KeyboardInterrupt:
        return


def _follow_there(wanted: Filter, last: int, every: float, *, as_json: bool) -> NoReturn:
    """Print the events of another inbox, until Ctrl-C."""
    from hookonce.receiver.cli.desk import desk
    from hookonce.receiver.cli.far_tail import INTERVAL, FarTail

    with desk() as here:
        following = FarTail(
            here, {name: value for name, value in asdict(wanted).items() if value is not None}, last
        )
        while True:
            _print(following.look(), as_json=as_json)
            sleep(max(every, INTERVAL.total_seconds()))


def _begin(connection: psycopg.Connection, wanted: Filter, last: int, *, as_json: bool) -> Tail:
    following = Tail(connection, wanted)
    shown = list(events.events(connection, wanted, last))[::-1] if last else []
    following.follow(shown)
    _print(shown, as_json=as_json)
    return following


def _print(rows: "Iterable[Event]", *, as_json: bool) -> None:
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
