"""Which events a page is asked for: the fields of its form, as a filter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from receiver.ledger.desk import Filter
from receiver.spans import moment
from receiver.vocabulary import EVENT_STATUSES

STATUSES = tuple(EVENT_STATUSES)
FIELDS = ("source", "provider", "type", "status", "account", "id", "since", "until", "handler", "error")
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class Asked:
    """A filter, the fields as they were typed (those with something in them), and what is wrong with them."""

    wanted: Filter
    said: dict[str, str] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)


def asked(form: Mapping[str, str], now: datetime) -> Asked:
    """Read a form; what can't be read is left out and told."""
    typed = {name: form.get(name, "").replace("\0", "").strip()[:_LONGEST] for name in FIELDS}
    said = {name: text for name, text in typed.items() if text}
    mistakes: list[str] = []
    times = {name: _time(said[name], now, mistakes) for name in ("since", "until") if name in said}
    if said.get("status", "dead") not in STATUSES:
        mistakes.append(f"no status is called {said.pop('status')!r}; there are {', '.join(STATUSES)}")
    wanted = Filter(
        source=said.get("source"),
        provider=said.get("provider"),
        type=said.get("type"),
        status=said.get("status"),
        account=said.get("account"),
        event_id=said.get("id"),
        since=times.get("since"),
        until=times.get("until"),
        handler=said.get("handler"),
        error=said.get("error"),
    )
    return Asked(wanted, said, mistakes)


def fixed(form: Asked) -> dict[str, str]:
    """Give the fields again with times that do not move on, so that a form means what its page showed."""
    times = {"since": form.wanted.since, "until": form.wanted.until}
    return form.said | {name: at.isoformat() for name, at in times.items() if at}


def _time(text: str, now: datetime, mistakes: list[str]) -> datetime | None:
    """Read a time; without an offset it is UTC, as all times on the pages are."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return read if read.tzinfo else read.replace(tzinfo=UTC)
    try:
        return moment(text, now)
    except ValueError as error:
        mistakes.append(str(error))
        return None
