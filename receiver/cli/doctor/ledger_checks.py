"""Findings of `hookonce doctor` about what the ledger holds; none while the database is away: another check tells."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import psycopg

from hookonce.receiver.cli.connections import UNREACHABLE, ledger
from hookonce.receiver.cli.doctor.encryption import encryption
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.cli.doctor.slots import slots
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.desk.sources import words_for_never_came
from hookonce.receiver.ledger import alerts
from hookonce.receiver.ledger.maintenance import lost_events as lost
from hookonce.receiver.ledger.maintenance import sender_api
from hookonce.receiver.ledger.stats import source_activity

TIME_LIMIT = timedelta(seconds=1)
"""How long it looks, newest first; what is older a sweep looks through in the course of a day."""
NAMED = 20
UNCLAIMED = (
    "{} runs are under a claim that there is not, so no worker takes them (newest events: {}); the sweep gives them one"
    " again: have `hookonce sweep` or a worker run, and please report it"
)


def ledger_checks(settings: Settings) -> Iterator[Finding]:
    """Yield what each check of the ledger finds; one that fails keeps no other from looking."""
    with suppress(*UNREACHABLE), ledger(settings) as connection:
        for check in (_lost_events, _never_came, _conflicts, _alert_targets, slots, encryption):
            with suppress(*UNREACHABLE):
                yield from check(connection, settings)


def _lost_events(connection: psycopg.Connection, _settings: Settings) -> Iterator[Finding]:
    """Name lost events, and runs whose claim is gone."""
    found = lost.found_so_far(connection, TIME_LIMIT)
    if found:
        yield Finding("fail", "events", lost.words(found))
    else:
        yield Finding("ok", "events", "each has an open run or an outcome")
    if unclaimed := lost.unclaimed(connection, TIME_LIMIT):
        text = UNCLAIMED.format(len(unclaimed), " ".join(map(str, unclaimed[:NAMED])))
        yield Finding("fail", "claims", text)


def _never_came(connection: psycopg.Connection, settings: Settings) -> Iterator[Finding]:
    """Report on each source whose sender is asked, and on its subscriptions."""
    asked = {name: source for name, source in settings.sources.items() if source.asks}
    if not asked:
        return
    now = datetime.now(UTC)
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


def _conflicts(connection: psycopg.Connection, _settings: Settings) -> Iterator[Finding]:
    """Name the sources most of whose deliveries conflict."""
    for source, (number, deliveries) in sorted(source_activity.mostly_in_conflict(connection).items()):
        text = source_activity.words_for_mostly_conflicts(source, number, deliveries)
        yield Finding("warn", f"ids of {source}", text)


def _alert_targets(connection: psycopg.Connection, _settings: Settings) -> Iterator[Finding]:
    """Name the targets that an alert of the last day has not reached."""
    for handler, error, failed_at in alerts.unreached(connection):
        text = f"{error}, last at {failed_at:%Y-%m-%d %H:%M} UTC; correct it, then `hookonce alerts test`"
        yield Finding("warn", "alerts", f"{handler.partition('.')[2]} did not arrive: {text}")
