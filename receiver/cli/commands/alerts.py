"""`hookonce alerts`: alerts, and a test alert."""

import sys
import time
from datetime import timedelta

import click

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.cli.connections import registered_workers
from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options.time_option import SPAN
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.access.history import list_alerts, send_test_alert
from hookonce.receiver.desk.events import EventPath, get_event
from hookonce.receiver.desk.rows import Run
from hookonce.receiver.durations import format_duration
from hookonce.receiver.ledger.states import EventStatus

POLLED = timedelta(seconds=4)
"""Within this time a worker takes what is due, even one that is not registered, since Redis is away."""


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
            "since": lambda alert: ago(alert.since),
            "ended": lambda alert: alert.ended_at and ago(alert.ended_at),
            "what": "detail",
        },
        "no alert matches",
        name="list",
        about="List open alerts, the longest first. With --all every one, the newest first.",
        instead={
            "state": click.Option(
                ["--all", "state"], flag_value="all", default="open", help="Those that have ended, too."
            ),
        },
    )
)


@alerts.command("test")
@click.option(
    "--wait",
    default="30s",
    show_default=True,
    type=SPAN,
    help="How long to wait for a worker; 0s: not at all.",
)
def test(wait: timedelta) -> None:
    """Send a test alert to each target, and say what came back."""
    began, runs, is_ignored = time.monotonic(), list[Run](), False
    with desk() as here:
        number = here.ask(send_test_alert).event
        workers = registered_workers()
        patience = min(wait, POLLED) if workers == 0 else wait
        while time.monotonic() - began < patience.total_seconds() and not is_ignored:
            found = here.ask(get_event, which=asking(EventPath, event=str(number)))
            runs, is_ignored = [run for run in found.runs if run.handler], found.status == EventStatus.IGNORED
            if runs and all(run.finished_at or run.error for run in runs):
                break
            time.sleep(0.2)
    for run in runs:
        click.echo(f"{run.handler.removeprefix('hookonce.alert to ')}: {_said(run)}")
    if not wait:
        tell(f"a worker sends it as event {number}; `hookonce events show {number}` shows what came of it")
    elif is_ignored:
        text = "the worker that took it was started without a target; restart workers with this configuration"
        raise click.ClickException(text)
    elif not runs:
        state = "is running" if workers == 0 else f"took it within {format_duration(wait)}"
        text = f"no worker {state}, so event {number} waits for one; start `hookonce worker`, or see `hookonce doctor`"
        raise click.ClickException(text)
    elif any(run.error or not run.finished_at for run in runs):
        tell(f"a worker tries what failed for an hour; `hookonce events show {number}` has the rest")
        sys.exit(Exit.FAILURE)


def _said(run: Run) -> str:
    """Return what a target answered."""
    if run.error:
        return f"failed: {run.error}"
    if not run.finished_at:
        return "was not tried yet"
    return f"accepted ({run.result['status']})" if isinstance(run.result, dict) else run.status
