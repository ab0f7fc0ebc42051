"""What is wrong by the ledger's own figures, in words that say what was expected and what to do."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import psycopg

from receiver import rhythm
from receiver.ledger import figures, seen
from receiver.ledger.alerts import Alert
from receiver.settings import Settings
from receiver.settings_alerts import SOURCE, Rate
from receiver.spans import said

Trouble = dict[tuple[str, str], str]
"""(kind, subject) → what to say about it."""

FAILURES = ("rejected.bad_signature", "rejected.stale", "rejected.no_secret")
LAG = timedelta(minutes=2)
"""How long a delivery may be in the ledger before it is counted."""


def in_ledger(
    connection: psycopg.Connection,
    settings: Settings,
    known: Mapping[tuple[str, str], Alert],
    since: datetime,
    now: datetime,
) -> Trouble:
    """Find what is wrong; `known` is what was wrong before, `since` when looking began or went on after an outage."""
    chosen = settings.alerts
    found: Trouble = {}
    if chosen.signature_failures:
        found |= _failures(connection, chosen.signature_failures)
    if chosen.dead_runs:
        found |= _dead(connection, chosen.dead_runs)
    if chosen.oldest_due:
        found |= _late(connection, chosen.oldest_due)
    if seen.is_current(connection):
        found |= dict(_silent(connection, settings, known, since, now))
    else:  # nothing is known, so nothing changes
        found |= {label: alert.detail for label, alert in known.items() if alert.kind == "source_silent"}
    return found


def _failures(connection: psycopg.Connection, rate: Rate) -> Trouble:
    return {
        ("signature_failures", source): (
            f"{number} deliveries within {said(rate.within)} failed verification; expected fewer than "
            f"{rate.number}; see `hookonce rejected list --source {source}`: is the secret still the sender's?"
        )
        for source, number in seen.recent(connection, rate.within, FAILURES).items()
        if number >= rate.number
    }


def _dead(connection: psycopg.Connection, rate: Rate) -> Trouble:
    return {
        ("dead_runs", source): (
            f"{number} {'event' if number == 1 else 'events'} died within {said(rate.within)}; see why with "
            f"`hookonce events list --status dead --source {source}`, "
            f"then `hookonce replay --status dead --source {source}`"
        )
        for source, number in seen.recent(connection, rate.within, ["dead"]).items()
        if number >= rate.number and source != SOURCE  # or an alert that can't be sent would make another
    }


def _late(connection: psycopg.Connection, longest: timedelta) -> Trouble:
    age = timedelta(seconds=figures.oldest_due(connection))
    if age <= longest:
        return {}
    text = f"an event has been due for {said(age)}; expected {said(longest)} at most"
    return {("oldest_due", ""): f"{text}; start `hookonce worker`, or more of them"}


def _silent(
    connection: psycopg.Connection,
    settings: Settings,
    known: Mapping[tuple[str, str], Alert],
    since: datetime,
    now: datetime,
) -> Iterator[tuple[tuple[str, str], str]]:
    last = seen.last_seen(connection)
    learning: dict[str, datetime] = {}
    for name, source in settings.sources.items():
        label = ("source_silent", name)
        silent_since = max(last.get(name, since), since)
        if label in known and silent_since < known[label].since - LAG:
            # Only a delivery ends it: one that was not counted then, or came since.
            yield label, known[label].detail
        elif source.expect_every and now - silent_since > source.expect_every + LAG:
            told = (
                "since it is watched" if silent_since == since else f"since {silent_since:%Y-%m-%d %H:%M} UTC"
            )
            yield (
                label,
                (
                    f"no delivery {told}; expected one every {said(source.expect_every)} "
                    f"([sources.{name}] expect_every); does its sender still have our URL?"
                ),
            )
        elif not source.expect_every and settings.alerts.learn and now - silent_since > rhythm.HOUR:
            learning[name] = silent_since
    for name, hours in seen.hours(connection, list(learning)).items():
        missing = rhythm.missing(hours, learning[name], now)
        if missing:
            yield (
                ("source_silent", name),
                (
                    f"no delivery since {learning[name]:%Y-%m-%d %H:%M} UTC; by its own rhythm {missing.due} or more "
                    f"were due: the least that the same hours brought in each of the last {missing.weeks} weeks; set "
                    f"[sources.{name}] expect_every if that is no reason to worry"
                ),
            )
