"""Whether a source is well, in one word, why that is said, and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from hookonce.receiver.dashboard.template_filters import span
from hookonce.receiver.desk.rows import Alert
from hookonce.receiver.desk.sources import Signs
from hookonce.receiver.source import Source

_LATE = timedelta(minutes=1)
_QUIET_AFTER = timedelta(hours=1)
_BEATS_MISSED = 5
"""Usual gaps that a silence must be long before it is worth a word."""
_FEW = 5
"""Failed verifications within an hour that are noise, unless nothing else came."""


class Mark(StrEnum):
    """A source's state, the worst that fits."""

    TROUBLE = "trouble"
    PAUSED = "paused"
    QUIET = "quiet"
    NEW = "new"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Health:
    """A mark, why, and what to do; `link` names the page to do it on, '' for none."""

    mark: Mark
    why: str
    to_do: str = ""
    link: str = ""


def health(source: Source, signs: Signs, now: datetime) -> Health:
    """Judge a source: by its secret, its rejections, what is due, and its last event against its rhythm."""
    for judge in (_secret, _pause, _rejections, _due, _silence, _alerts):
        found = judge(source, signs, now)
        if found:
            return found
    if source.name not in signs.last:
        return Health(Mark.NEW, "no events yet", "Give its URL to the sender", "source")
    usual = signs.usual_gap.get(source.name)
    return Health(Mark.OK, f"usually one every {span(usual)}" if usual else "")


def lacks_secret(source: Source, handed: set[str]) -> bool:
    """Whether its deliveries can't be verified for want of a secret."""
    needed = source.provider.needs_secret and not source.unauthenticated
    return needed and not source.secrets and source.name not in handed


def _secret(source: Source, signs: Signs, _now: datetime) -> Health | None:
    if not lacks_secret(source, signs.handed):
        return None
    return Health(
        Mark.TROUBLE,
        "no secret: deliveries are answered 503",
        f"Set {source.secret_places}, and restart",
        "source",
    )


def _pause(source: Source, signs: Signs, _now: datetime) -> Health | None:
    if source.name not in signs.paused:
        return None
    return Health(Mark.PAUSED, "deliveries are accepted, runs wait", "Resume it when ready")


def _rejections(source: Source, signs: Signs, _now: datetime) -> Health | None:
    failed = signs.failed.get(source.name, 0)
    if not failed or (failed < _FEW and signs.taken.get(source.name)):
        return None
    why = f"{failed} {'delivery' if failed == 1 else 'deliveries'} within the hour failed verification"
    return Health(Mark.TROUBLE, why, "Compare its secret with the sender's", "rejected")


def _due(source: Source, signs: Signs, _now: datetime) -> Health | None:
    late = signs.oldest_due.get(source.name, 0)
    if late <= _LATE.total_seconds():
        return None
    why = f"an event has been due for {span(late)}"
    return Health(Mark.TROUBLE, why, "See that workers run, and what is parked", "handlers")


def _alerts(source: Source, signs: Signs, _now: datetime) -> Health | None:
    alert = _alert(signs.alerts, source.name)
    if alert is None:
        return None
    is_dead = alert.kind == "dead_runs"
    to_do = "See the errors, fix the cause, replay" if is_dead else "See the alert"
    return Health(Mark.TROUBLE, alert.kind.replace("_", " "), to_do, "dead_events" if is_dead else "overview")


def _silence(source: Source, signs: Signs, now: datetime) -> Health | None:
    last = signs.last.get(source.name)
    if _alert((each for each in signs.alerts if each.kind == "source_silent"), source.name):
        since = f"nothing for {span(now - last)}" if last else "nothing since monitoring began"
        return Health(Mark.TROUBLE, since, "Check the URL at its sender", "source")
    expected = source.expect_every or signs.usual_gap.get(source.name)
    if last is None or expected is None:
        return None
    limit = source.expect_every or max(expected * _BEATS_MISSED, _QUIET_AFTER)
    if now - last <= limit:
        return None
    rhythm = f"{'expected' if source.expect_every else 'usually'} one every {span(expected)}"
    why = f"nothing for {span(now - last)}; {rhythm}"
    return Health(Mark.QUIET, why, "Check the URL at its sender", "source")


def _alert(raised: Iterable[Alert], name: str) -> Alert | None:
    return next((each for each in raised if each.subject == name and each.kind != "breaker_open"), None)
