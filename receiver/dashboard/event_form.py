"""Which events a page is asked for: the fields of its form, as a filter."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from hookonce.receiver.desk.filters import FIELDS, Filter
from hookonce.receiver.desk.searches import Needle, needles
from hookonce.receiver.durations import parse_time
from hookonce.receiver.ledger.states import EventStatus

STATUSES = tuple(status.value for status in EventStatus)
SPANS = {"1h": "last hour", "24h": "last day", "7d": "last week"}
"""Choices of `since`, and their names."""
_FIELDS = {"id" if name == "event_id" else name: name for name in FIELDS if name != "run_by"} | {"body": ""}
"""The filter's name of each field of the form; the search in bodies has none."""
_MAX_FIELD_LENGTH = 600


@dataclass(frozen=True, slots=True)
class EventForm:
    """A filter, the fields as they were typed (those with something in them), and what is wrong with them.

    `needle` is what is looked for in bodies.
    """

    wanted: Filter
    needle: Needle | None = None
    typed: dict[str, str] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)

    @property
    def filter(self) -> dict[str, Any]:
        """The filter as the desk's actions take it: the fields that were given."""
        return {name: value for name, value in asdict(self.wanted).items() if value is not None}


def read_event_form(form: Mapping[str, str], now: datetime | None = None) -> EventForm:
    """Read a form; what can't be read is left out and stands in `mistakes`."""
    raw = {name: form.get(name, "").replace("\0", "").strip()[:_MAX_FIELD_LENGTH] for name in _FIELDS}
    typed = {name: text for name, text in raw.items() if text}
    mistakes: list[str] = []
    now = now or datetime.now(UTC)
    times: dict[str, datetime | None] = {
        name: _time(typed[name], now, mistakes) for name in ("since", "until") if name in typed
    }
    if typed.get("status", EventStatus.DEAD) not in STATUSES:
        mistakes.append(f"no status is called {typed.pop('status')!r}; there are {', '.join(STATUSES)}")
    given: dict[str, Any] = {field: typed.get(name) for name, field in _FIELDS.items() if field}
    given.update(times)
    wanted = Filter(**given)
    if not (wanted.error or wanted.issue or wanted.status == EventStatus.DEAD):
        wanted = replace(wanted, handler=None, run_by=wanted.handler)
    return EventForm(wanted, _needle(typed, mistakes), typed, mistakes)


def pinned_times(form: EventForm) -> dict[str, str]:
    """Return the fields again with times that do not move on, so that a form means what its page showed."""
    times = {"since": form.wanted.since, "until": form.wanted.until}
    return form.typed | {name: at.isoformat() for name, at in times.items() if at}


def _needle(typed: dict[str, str], mistakes: list[str]) -> Needle | None:
    try:
        return needles.read(typed["body"]) if "body" in typed else None
    except ValueError as error:
        mistakes.append(str(error))
        return None


def _time(text: str, now: datetime, mistakes: list[str]) -> datetime | None:
    """Read a time; without an offset it is UTC, as all times on the pages are."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return read if read.tzinfo else read.replace(tzinfo=UTC)
    try:
        return parse_time(text, now)
    except ValueError as error:
        mistakes.append(str(error))
        return None
