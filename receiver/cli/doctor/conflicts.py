"""Findings of `hookonce doctor` about sources: ids that do not tell their events apart."""

from collections.abc import Iterator
from contextlib import suppress

import psycopg

from hookonce.receiver.cli.connections import ledger
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.database.schema_version import SchemaBehind
from hookonce.receiver.ledger.stats import source_activity


def conflicts(settings: Settings) -> Iterator[Finding]:
    """Name the sources most of whose deliveries conflict; nothing while the database is away."""
    with (
        suppress(psycopg.Error, LedgerUnavailable, SchemaBehind, ConfigError),
        ledger(settings) as connection,
    ):
        found = source_activity.mostly_in_conflict(connection)
        for source, (number, deliveries) in sorted(found.items()):
            text = source_activity.words_for_mostly_conflicts(source, number, deliveries)
            yield Finding("warn", f"ids of {source}", text)
