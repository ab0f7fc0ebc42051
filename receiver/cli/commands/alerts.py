"""`hookonce alerts`: what is wrong, and whether anybody would hear of it."""

import click

from hookonce.receiver.cli.connections import configured, ledger, notify_workers
from hookonce.receiver.cli.output.tables import print_json, show
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger import alerts as ledger_alerts
from hookonce.receiver.monitoring import alert_events


@click.group()
def alerts() -> None:
    """See what is wrong, and try whether alerts arrive."""


@alerts.command("list")
@click.option("--all", "is_all", is_flag=True, help="Those that have ended, too.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1), help="With --all.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def list_alerts(limit: int, *, is_all: bool, as_json: bool) -> None:
    """List open alerts, the longest first. With --all every one, the newest first."""
    with ledger() as connection:
        found = (
            ledger_alerts.all_alerts(connection, limit) if is_all else ledger_alerts.open_alerts(connection)
        )
    if as_json:
        for alert in found:
            print_json(alert._asdict())
        return
    if not found:
        click.echo("no alert is open" if not is_all else "there was no alert", err=True)
        return
    show(("id", "kind", "subject", "since", "ended", "what"), [_row(alert) for alert in found])


@alerts.command("test")
def send_test() -> None:
    """Send a test alert to every URL in [alerts] urls. It goes the way of a real one."""
    settings = configured()
    if not settings.alerts.are_sent:
        raise ConfigError(["[alerts] has no urls, so nobody hears of an alert; name where to POST them"])
    with ledger(settings) as connection:
        number = alert_events.send_test(connection, settings.keyring)
    notify_workers(settings)
    click.echo(f"a worker sends it as event {number}; `hookonce events show {number}` says what came of it")


def _row(alert: ledger_alerts.Alert) -> list[object]:
    return [alert.id, alert.kind, alert.subject or None, alert.since, alert.ended_at, alert.detail]
