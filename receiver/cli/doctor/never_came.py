"""Findings of `hookonce doctor` about events that never came, as senders list them, and subscriptions that end."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import psycopg

from hookonce.receiver.cli.connections import ledger
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.desk.sources import words_for_never_came
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.database.schema_version import SchemaBehind
from hookonce.receiver.ledger.maintenance import sender_api


def never_came(settings: Settings) -> Iterator[Finding]:
    """Report on each source whose sender is asked; nothing while the database is away, which another check tells."""
    asked = {name: source for name, source in settings.sources.items() if source.asks}
    if not asked:
        return
    now = datetime.now(UTC)
    with (
        suppress(psycopg.Error, LedgerUnavailable, SchemaBehind, ConfigError),
        ledger(settings) as connection,
    ):
        listings, missing = sender_api.listings(connection), sender_api.missing_counts(connection)
        for name, source in asked.items():
            if source.reconcile:
                state, number = listings.get(name), missing.get(name, (0, now))[0]
                is_well = state and state.asked_at and not number and not state.failed_since
                said = words_for_never_came(source, state, number, now)
                yield Finding("ok" if is_well else "warn", f"never came: {name}", said)
        for each in sender_api.subscriptions(connection, asked.values()):
            until = f"lasts until {each.expires_at:%Y-%m-%d %H:%M} UTC" if each.expires_at else "is not there"
            said = f"{each.resource} {until}{f'; not renewed: {each.problem}' if each.problem else ''}"
            yield Finding("warn" if each.problem else "ok", f"subscription: {each.source}", said)
