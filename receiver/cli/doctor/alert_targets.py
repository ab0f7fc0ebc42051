"""Findings of `hookonce doctor` about alerts: targets that they did not reach."""

from collections.abc import Iterator
from contextlib import suppress

from hookonce.receiver.cli.connections import UNREACHABLE, ledger
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger import alerts


def alert_targets(settings: Settings) -> Iterator[Finding]:
    """Name the targets that an alert of the last day has not reached; nothing while the database is away."""
    with suppress(*UNREACHABLE), ledger(settings) as connection:
        for handler, error, failed_at in alerts.unreached(connection):
            text = f"{error}, last at {failed_at:%Y-%m-%d %H:%M} UTC; correct it, then `hookonce alerts test`"
            yield Finding("warn", "alerts", f"{handler.partition('.')[2]} did not arrive: {text}")
