"""`hookonce alerts`: what is wrong, and whether anybody would hear of it."""

from functools import partial

import click

from hookonce.receiver.cli.desk import desk, rows
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.desk.history import AlertsQuery, send_test_alert
from hookonce.receiver.desk.history import list_alerts as list_alerts_


@click.group()
def alerts() -> None:
    """See what is wrong, and try whether alerts arrive."""


@alerts.command("list")
@click.option("--all", "is_all", is_flag=True, help="Those that have ended, too.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="With --all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_alerts(limit: int, *, is_all: bool, as_json: bool) -> None:
    """List open alerts, the longest first. With --all every one, the newest first."""
    with desk() as here:
        found = list(rows(here, list_alerts_, partial(AlertsQuery, state="all" if is_all else "open"), limit))
    if as_json:
        for alert in found:
            print_json(alert.model_dump())
        return
    show(
        ("id", "kind", "subject", "since", "ended", "what"),
        [(a.id, a.kind, a.subject or None, a.since, a.ended_at, a.detail) for a in found],
        empty="there was no alert" if is_all else "no alert is open",
    )


@alerts.command("test")
def test() -> None:
    """Send a test alert to every URL in [alerts] urls. It goes the way of a real one."""
    with desk() as here:
        number = here.ask(send_test_alert).event
    click.echo(f"a worker sends it as event {number}; `hookonce events show {number}` says what came of it")
