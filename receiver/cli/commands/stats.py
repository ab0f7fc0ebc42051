"""`hookonce stats`: the numbers of the inbox at a glance."""

from collections.abc import Mapping

import click

from hookonce.receiver.cli.connections import ledger
from hookonce.receiver.cli.desk import desk
from hookonce.receiver.cli.output.printing import paged, put
from hookonce.receiver.cli.output.tables import cell, print_json, show
from hookonce.receiver.desk.forms import plain
from hookonce.receiver.desk.stats import Stats, get_stats, recount_events

_HELD_UP = {
    "paused": "kind name by since",
    "breakers": "handler is_open failures waiting try_at error",
    "batches": "handler events batches halvings waiting size error",
    "workers": "name slots busy lost seconds_ago",
    "long_transactions": "handler event seconds",
}
"""Lists of what keeps events back, and their columns; they stand above the events."""
_COUNTS = {"rejected": "source reason count", "secrets": "source slot count last_used"}
"""Lists below the events, and their columns."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--recount", is_flag=True, help="Count the whole ledger afresh, as after changes by hand.")
def stats(*, as_json: bool, recount: bool) -> None:
    """Count events by source and status, rejected deliveries by reason, uses of secrets; say what waits."""
    if recount:
        with ledger() as connection:
            recount_events(connection)
    with desk() as here:
        found = here.ask(get_stats)
    if as_json:
        print_json(found.model_dump())
        return
    with paged():
        _show(found)


def _show(found: Stats) -> None:
    _figure("accepted", _account(found.account))
    for name, value in found:
        if isinstance(value, int | float) or (isinstance(value, dict) and value and name != "account"):
            _figure(_spaced(name), plain(value))
    if found.notifications_pending is None:
        _figure("notifications pending", "unknown: Redis does not answer")
    for row in found.alerts:
        _figure("alert", f"{row.kind} {row.subject}: {row.detail}")
    _lists(found, _HELD_UP)
    click.echo()
    show(
        ("source", "status", "events"),
        [(each.source, each.status, f"{'' if each.is_exact else '~'}{each.count}") for each in found.events],
        empty="no event yet; `hookonce trigger SOURCE` sends one",
    )
    _lists(found, _COUNTS)


def _lists(found: Stats, columns_of: Mapping[str, str]) -> None:
    for name, columns in columns_of.items():
        if rows := getattr(found, name):
            click.echo(f"\n{_spaced(name)}")
            names = columns.split()
            show(
                list(map(_spaced, names)), [[_rounded(getattr(row, each)) for each in names] for row in rows]
            )


def _account(account: dict[str, int]) -> str:
    """Say what became of all that was accepted, in numbers that add up; replays are no events, and said apart."""
    became = " + ".join(
        f"{count} {name}" for name, count in account.items() if count and name not in {"accepted", "replayed"}
    )
    return f"{account['accepted']} = {became or 'nothing'}; {account['replayed']} replayed"


def _figure(name: str, value: object) -> None:
    put(f"{name:<22} {cell(value)}", " " * 23)


def _rounded(value: object) -> object:
    return round(value, 1) if isinstance(value, float) else value


def _spaced(name: str) -> str:
    return name.replace("_", " ")
