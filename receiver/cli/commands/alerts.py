"""`hookonce alerts`: alerts, and a test alert."""

import click

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.cli.desk import desk
from hookonce.receiver.desk.history import list_alerts, send_test_alert


@click.group()
def alerts() -> None:
    """List alerts, and send a test alert."""


alerts.add_command(
    listing(
        list_alerts,
        {
            "id": "id",
            "kind": "kind",
            "subject": lambda alert: alert.subject or None,
            "since": "since",
            "ended": "ended_at",
            "what": "detail",
        },
        "no alert matches",
        name="list",
        about="List open alerts, the longest first. With --all every one, the newest first.",
        instead={
            "state": click.Option(
                ["--all", "state"], flag_value="all", default="open", help="Those that have ended, too."
            ),
            "limit": click.Option(
                ["--limit"], default=100, show_default=True, type=click.IntRange(1), help="At most so many."
            ),
        },
    )
)


@alerts.command("test")
def test() -> None:
    """Send a test alert to every URL in [alerts] urls. It goes the way of a real one."""
    with desk() as here:
        number = here.ask(send_test_alert).event
    click.echo(f"a worker sends it as event {number}; `hookonce events show {number}` says what came of it")
