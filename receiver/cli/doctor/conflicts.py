"""Findings of `hookonce doctor` about sources: ids that do not tell their events apart."""

from collections.abc import Iterator
from contextlib import suppress

from hookonce.receiver.cli.connections import UNREACHABLE, ledger
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.stats import source_activity


def conflicts(settings: Settings) -> Iterator[Finding]:
    """Name the sources most of whose deliveries conflict; nothing while the database is away."""
    with suppress(*UNREACHABLE), ledger(settings) as connection:
        found = source_activity.mostly_in_conflict(connection)
        for source, (number, deliveries) in sorted(found.items()):
            text = source_activity.words_for_mostly_conflicts(source, number, deliveries)
            yield Finding("warn", f"ids of {source}", text)
