"""Conditions of alerts, by the ledger's own figures, in words that say what was expected and what to do."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import psycopg

from hookonce.jobs.alerts import missing_deliveries
from hookonce.receiver.config.alerts import Alerts, Rate
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.config.suggestions import ALERTS_SOURCE
from hookonce.receiver.durations import format_duration
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.maintenance import sender_api, steady_clock
from hookonce.receiver.ledger.runs import breakers
from hookonce.receiver.ledger.stats import backlog, issues, source_activity
from hookonce.receiver.ledger.stats.counters import Kind
from hookonce.receiver.ledger.stats.source_activity import words_for_mostly_conflicts
from hookonce.receiver.monitoring.alert_events import ISSUES

Condition = dict[tuple[str, str], str]
"""(kind, subject) → what to say about it."""

FAILURES = ("rejected.bad_signature", "rejected.stale", "rejected.no_secret")
FAILED = (
    "{number} deliveries within {within} failed verification; expected fewer than {most}; see "
    "`hookonce rejected list --source {source}`: is the secret still the sender's?"
)
IN_CONFLICT = (
    "{number} deliveries within {within} had another body under a known id; expected fewer than {most}; compare them "
    "with `hookonce events conflicts`: a sender's bug, or somebody else's body"
)
UNREADABLE = (
    "{number} genuine deliveries within {within} could not be read by the source's provider module, and are kept; "
    "expected fewer than {most}; find them with `hookonce events list --type unreadable --source {source}`, see why "
    "with `hookonce events show`, and once the module reads them `hookonce replay --type unreadable --source {source}`"
)
LOST_LEASES = (
    "{number} attempts within {within} could not end, since their lease was another's by then; expected fewer than "
    "{most}; workers or the database stood still: what they wrote was rolled back, and was done again"
)
_COUNTED = (
    ("signature_failures", FAILURES, FAILED),
    ("conflicts", (Kind.CONFLICT,), IN_CONFLICT),
    ("unreadable", (Kind.UNREADABLE,), UNREADABLE),
    ("lost_leases", (Kind.REFUSED,), LOST_LEASES),
)
"""Alerts that are raised where something was counted too often: setting, what is counted, text."""
_REMADE = timedelta(days=1)
"""How long it is told that a subscription was made again."""
_COUNTS_FOR = timedelta(minutes=4)
"""How long a sweep that has counted is taken to go on: silence is the sources', and not ours."""
_NAMED = 3
"""Issues that an alert names at most."""
LAG = timedelta(minutes=2)
"""How long it may take until a repetition is counted: under the minute it came in, by a receiver that may be busy."""


def ledger_conditions(
    connection: psycopg.Connection,
    settings: Settings,
    known: Mapping[tuple[str, str], Alert],
    since: datetime,
    now: datetime,
) -> Condition:
    """Find what is wrong; `known` is what was wrong before, `since` when looking began or went on after an outage."""
    chosen = settings.alerts
    raised = _raised(connection, chosen, known)
    found = _issues(raised) | _clock(connection)
    found |= dict(_never_came(connection, settings, now))
    for kind, counted, text in _COUNTED:
        if rate := getattr(chosen, kind):
            found |= _often(connection, kind, rate, counted, text)
    if chosen.dead_runs:
        found |= _dead(connection, chosen.dead_runs, known, raised if chosen.issues else None)
    if chosen.oldest_due:
        found |= _overdue(connection, chosen.oldest_due)
    if chosen.retried_for:
        found |= _retried(connection, chosen.retried_for)
    if chosen.breaker_open:
        explained = {each.handler for each in raised}
        stopped = _stopped(connection, chosen.breaker_open, now)
        found |= {each: text for each, text in stopped.items() if each in known or each[1] not in explained}
    if chosen.duplicates:
        found |= _duplicates(connection, chosen.duplicates)
    if chosen.conflicts:
        found |= _mostly_conflicts(connection)
    if source_activity.counted_until(connection) > (now - _COUNTS_FOR).timestamp():
        found |= dict(_silent(connection, settings, known, since, now))
    else:  # nothing is known, so nothing changes
        found |= {label: alert.detail for label, alert in known.items() if alert.kind == "source_silent"}
    return found


def _often(
    connection: psycopg.Connection, kind: str, rate: Rate, counted: Sequence[str], text: str
) -> Condition:
    """Say a text of each source of which too much was counted lately; it names `number`, `within`, `most`, `source`."""
    within = format_duration(rate.within)
    return {
        (kind, source): text.format(number=number, within=within, most=rate.number, source=source)
        for source, number in source_activity.recent(connection, rate.within, counted).items()
        if number >= rate.number
    }


def _raised(
    connection: psycopg.Connection, chosen: Alerts, known: Mapping[tuple[str, str], Alert]
) -> Sequence[issues.RaisedIssue]:
    return (
        issues.raised(connection, [name for kind, name in known if kind in ISSUES]) if chosen.issues else ()
    )


def _issues(raised: Iterable[issues.RaisedIssue]) -> Condition:
    """Tell of issues until a person has said something of them, or none of their events is dead or tried again."""
    found: Condition = {}
    for issue in raised:
        kind, how = (
            ("reopened_issue", "failed again, though it was fixed")
            if issue.is_reopened
            else ("new_issue", "is new")
        )
        release = f" (release: {issue.release})" if issue.release else ""
        found[kind, issue.id] = (
            f"{issue.title} in {issue.handler} {how}{release}; see it with `hookonce issues show {issue.id}`, "
            f"then `hookonce issues fix {issue.id}` or `hookonce issues ignore {issue.id} --for 7d`"
        )
    return found


def _clock(connection: psycopg.Connection) -> Condition:
    since = steady_clock.held_since(connection)
    return {("clock", ""): f"nothing is pruned: {steady_clock.why(since)}"} if since else {}


def _dead(
    connection: psycopg.Connection,
    rate: Rate,
    known: Mapping[tuple[str, str], Alert],
    raised: Iterable[issues.RaisedIssue] | None,
) -> Condition:
    """Tell of dead events whose issues are not among the `raised` ones, and have not been marked by a person."""
    dead = backlog.dead(connection, rate.within)
    told = set(dead)
    if raised is not None:
        told &= issues.unexplained(connection, rate.within, [each.id for each in raised])
        told |= {source for source in dead if ("dead_runs", source) in known}
    return {
        ("dead_runs", source): (
            f"{recent} {'event' if recent == 1 else 'events'} died within {format_duration(rate.within)}, "
            f"and {number} {'is' if number == 1 else 'are'} dead in all{_killers(connection, source)}; see why with "
            f"`hookonce events list --status dead --source {source}`, "
            f"then `hookonce replay --status dead --source {source}`"
        )
        for source, (recent, number) in dead.items()
        if source in told
        and recent >= rate.number
        and source != ALERTS_SOURCE  # or an alert that can't be sent would make another
    }


def _killers(connection: psycopg.Connection, source: str) -> str:
    """Name the issues that most of a source died of; what errors say stays here, for it may quote events."""
    found = issues.killers(connection, source, _NAMED)
    told = [f"{number} of {title} in {handler} (issue {name})" for name, handler, title, number in found]
    return f": {', '.join(told)}" if told else ""


def _overdue(connection: psycopg.Connection, longest: timedelta) -> Condition:
    age = timedelta(seconds=backlog.oldest_due(connection))
    if age <= longest:
        return {}
    text = f"an event has been due for {format_duration(age)}; expected {format_duration(longest)} at most"
    return {("oldest_due", ""): f"{text}; start `hookonce worker`, or more of them"}


def _retried(connection: psycopg.Connection, longest: timedelta) -> Condition:
    return {
        ("retried_for", source): (
            f"{each.number} of its events failed and {'is' if each.number == 1 else 'are'} still tried again after "
            f"{format_duration(longest)}; see why with "
            f"`hookonce events list --status waiting --source {source}`"
        )
        for source, each in backlog.retries_by_source(connection, longest).items()
        if each.number and source != ALERTS_SOURCE
    }


def _stopped(connection: psycopg.Connection, longest: timedelta, now: datetime) -> Condition:
    found: Condition = {}
    for each in breakers.breakers(connection):
        if each.opened_at is None or now - each.opened_at <= longest:
            continue
        text = (
            f"its circuit breaker has been open for {format_duration(now - each.opened_at)} ({each.error}); expected "
            f"{format_duration(longest)} at most"
        )
        if each.oldest_waiting_seconds is not None:
            age = format_duration(timedelta(seconds=each.oldest_waiting_seconds))
            number = f"{each.waiting} {'event waits' if each.waiting == 1 else 'events wait'}"
            text += f"; {number}, the oldest came {age} ago"
        resume = f"`hookonce resume {shlex.quote(each.handler)} --kind handler`"
        found["breaker_open", each.handler] = (
            f"{text}; fix the cause: one event is tried now and then, and {resume} has all go on at once"
        )
    return found


def _duplicates(connection: psycopg.Connection, rate: Rate) -> Condition:
    new = source_activity.recent(connection, rate.within, ["accepted"])
    return {
        ("duplicates", source): (
            f"{number} duplicates within {format_duration(rate.within)}, and {new.get(source, 0)} new events; expected "
            f"fewer than {rate.number}, or more that is new: does the sender get our answers, and in time?"
        )
        for source, number in source_activity.recent(connection, rate.within, ["duplicate"]).items()
        if number >= rate.number and number > new.get(source, 0)
    }


def _never_came(
    connection: psycopg.Connection, settings: Settings, now: datetime
) -> Iterator[tuple[tuple[str, str], str]]:
    if (longest := settings.alerts.never_came) is None:
        return
    span = format_duration(longest)
    for source, (number, first) in sender_api.missing_counts(connection).items():
        if source in settings.sources and now - first > longest:
            yield (
                ("missing_events", source),
                (
                    f"its sender lists {number} events that never came, for more than {span}; see which and why with "
                    f"`hookonce sources show {source}`, and have them come with `hookonce reconcile {source}`"
                ),
            )
    for listing in sender_api.listings(connection).values():
        if listing.source in settings.sources and _is_long(listing.failed_since, longest, now):
            yield (
                ("sender_not_asked", listing.source),
                f"its sender was not asked for more than {span}: {listing.problem}",
            )
    for each in sender_api.subscriptions(connection, settings.sources.values()):
        is_over = each.expires_at is not None and each.expires_at < now
        if is_over or _is_long(each.failed_since, longest, now):
            until = f"ends at {each.expires_at:%Y-%m-%d %H:%M} UTC" if each.expires_at else "is not there"
            yield (
                ("subscription", f"{each.source} {each.resource}"),
                f"the subscription {until} and was not renewed: {each.problem}",
            )
        elif each.remade_at and now - each.remade_at < _REMADE:
            yield (
                ("subscription", f"{each.source} {each.resource}"),
                (
                    f"the subscription was gone, and was made again at {each.remade_at:%Y-%m-%d %H:%M} UTC; look up "
                    "what changed before that"
                ),
            )


def _is_long(since: datetime | None, longest: timedelta, now: datetime) -> bool:
    return since is not None and now - since > longest


def _mostly_conflicts(connection: psycopg.Connection) -> Condition:
    return {
        ("conflicts", source): words_for_mostly_conflicts(source, conflicts, deliveries)
        for source, (conflicts, deliveries) in source_activity.mostly_in_conflict(connection).items()
    }


def _silent(
    connection: psycopg.Connection,
    settings: Settings,
    known: Mapping[tuple[str, str], Alert],
    since: datetime,
    now: datetime,
) -> Iterator[tuple[tuple[str, str], str]]:
    last = source_activity.last_seen(connection)
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
                    f"no delivery {told}; expected one every {format_duration(source.expect_every)} "
                    f"([sources.{name}] expect_every); does its sender still have our URL?"
                ),
            )
        elif (
            not source.expect_every and settings.alerts.learn and now - silent_since > missing_deliveries.HOUR
        ):
            learning[name] = silent_since
    for name, hours in source_activity.hours(connection, list(learning)).items():
        missing = missing_deliveries.missing_deliveries(hours, learning[name], now)
        if missing:
            yield (
                ("source_silent", name),
                (
                    f"no delivery since {learning[name]:%Y-%m-%d %H:%M} UTC; by its own rhythm {missing.due} or more "
                    f"were due: the least that the same hours brought in each of the last {missing.weeks} weeks; set "
                    f"[sources.{name}] expect_every if that is not a reason to worry"
                ),
            )
