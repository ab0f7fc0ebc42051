"""Looks for trouble twice a minute, one sweep of all at a time: raises an alert once and resolves it once.

An alert and the event that tells of it are written in one transaction. What no ledger can tell (PostgreSQL
itself is away) is left to whoever watches `/readyz` or `hookonce_up`.
"""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import psycopg

from hookonce.jobs.alerts import conditions
from hookonce.jobs.alerts.conditions import Condition
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.encryption import KeyMissing
from hookonce.receiver.ledger import alerts
from hookonce.receiver.ledger.alerts import Alert
from hookonce.receiver.ledger.stats import issues
from hookonce.receiver.ledger.store import NewEvent, store
from hookonce.receiver.monitoring import alert_events
from hookonce.receiver.privacy.at_rest import sealed
from hookonce.receiver.privacy.masking import mask_secrets
from hookonce.receiver.redis import approximate
from hookonce.receiver.redis.client import Client, RedisUnavailable, connect, write

log = logging.getLogger(__name__)

PROBE = "hookonce:probe"
MAX_PER_HOUR = 10
"""Messages of alerts that each target gets within an hour; one more counts what is beyond."""


class AlertWatcher:
    """The alerts of one inbox, looked after from one process; `client` is the Redis that is probed."""

    def __init__(self, settings: Settings, client: Client) -> None:
        self._settings = settings
        self._client = client
        self._away_since: float | None = None
        self._refuses = ""

    def evaluate(self, connection: psycopg.Connection) -> int:
        """Raise and resolve what has changed, if it is this process's turn; return the number of changes."""
        self._probe()
        with connection.transaction():
            turn = alerts.take_turn(connection)
            if turn is None:
                return 0
            known = {(alert.kind, alert.subject): alert for alert in alerts.open_alerts(connection)}
            found = conditions.ledger_conditions(connection, self._settings, known, *turn) | self._in_redis()
            found |= self._filling(known)
            changed = list(_changes(connection, known, found))
            if self._settings.alerts.are_sent:
                self._tell(connection, changed)
            alerts.forget(connection)
        for alert in changed:
            status = "resolved" if alert.ended_at else "raised"
            fields = {"kind": alert.kind, "subject": alert.subject, "status": status, "detail": alert.detail}
            log.warning("alert", extra=fields)
        return len(changed)

    def _tell(self, connection: psycopg.Connection, changed: Sequence[Alert]) -> None:
        """Write the events that tell of changes, `MAX_PER_HOUR` at most, and then one that counts the others."""
        told = alerts.told(connection)
        room = max(0, MAX_PER_HOUR - told.within_hour)
        events = [self._event(connection, alert) for alert in changed[:room]]
        rest = told.untold - len(events)
        if rest > 0 and told.lately + len(events) >= MAX_PER_HOUR and not told.is_counted:
            events.append(alert_events.rest_event(told.now, rest, self._settings.console))
        try:
            events = [sealed(event, self._settings.keyring) for event in events]
        except KeyMissing as error:  # this process may lack the key, and the alert is shown all the same
            log.error("an alert is raised or resolved and not sent: %s", error)  # noqa: TRY400  the text says all
            return
        if events:
            store(connection, events)

    def _event(self, connection: psycopg.Connection, alert: Alert) -> NewEvent:
        """Return the event that tells of a change, with its issue if it is about one."""
        issue = issues.get(connection, alert.subject) if alert.kind in alert_events.ISSUES else None
        text = issue.with_content().error if issue and self._settings.alerts.with_text else None
        if text is not None:
            text = mask_secrets(self._settings.secrets())(text)
        return alert_events.alert_event(alert, self._settings.console, issue, text)

    def _probe(self) -> None:
        """Write to Redis as a receiver does: one that only answers pings is of no use."""
        try:
            write(self._client, PROBE, timedelta(minutes=1))
        except RedisUnavailable as error:
            self._refuses = error.refusal
            self._away_since = None if error.refusal else self._away_since or time.monotonic()
        else:
            self._away_since, self._refuses = None, ""

    def _in_redis(self) -> Condition:
        patience = self._settings.alerts.redis
        if patience is None:
            return {}
        if self._refuses:
            text = (
                f"Redis refuses to write ({self._refuses}): the window knows no duplicates and workers poll"
            )
            return {("window_trouble", "redis"): f"{text}; free memory, or make it a primary again"}
        away = timedelta(seconds=time.monotonic() - self._away_since if self._away_since else 0)
        if away < patience:
            return {}
        text = "Redis does not answer: nothing is lost, but duplicates cost more and workers poll"
        return {("redis_away", "redis"): f"{text}; start it, or correct REDIS_URL"}

    def _filling(self, known: Mapping[tuple[str, str], Alert]) -> Condition:
        """Find the approximate sets that nearly hold the ids they were declared for; nothing changes without Redis."""
        try:
            with connect(self._settings.window_url) as client:
                figures = approximate.figures(client)
        except (RedisUnavailable, ValueError):  # the last: what is there is not ours
            return {label: each.detail for label, each in known.items() if each.kind == "approximate_full"}
        return {
            (
                "approximate_full",
                each.name,
            ): f"{each.ids} ids in {each.keep}, of {each.most} at most: beyond, new ids "
            "are taken for known more often than declared; raise most, or shorten keep"
            for each in figures
            if each.ids >= approximate.FULL * each.most
        }


def _changes(
    connection: psycopg.Connection, known: Mapping[tuple[str, str], Alert], found: Condition
) -> Iterator[Alert]:
    """Write what is new and what is over; of the rest, how things stand now."""
    for (kind, subject), detail in sorted(found.items()):
        alert = known.get((kind, subject))
        if alert is None:
            raised = alerts.raise_alert(connection, kind, subject, detail)
            if raised:
                yield raised
        elif alert.detail != detail:
            alerts.update_detail(connection, alert, detail)
    for label, alert in known.items():
        if label not in found:
            resolved = alerts.resolve(connection, alert)
            if resolved:
                yield resolved
