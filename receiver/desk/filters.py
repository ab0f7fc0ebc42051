"""Which events: the same filter in a query and in the body of a bulk replay."""

from collections.abc import Iterator
from typing import Any, Generic, Literal

from pydantic import Field

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.suggestions import ALERTS_SOURCE, did_you_mean, no_source, unknown_handler
from hookonce.receiver.desk.models import IssueId, Name, Page, RequestModel, Row, Text, Time
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.queries import choices
from hookonce.receiver.ledger.queries.event_filter import FIELDS, Filter
from hookonce.receiver.ledger.rows import Ours, ResponseModel
from hookonce.receiver.ledger.states import EventStatus

__all__ = ["FIELDS", "Filter", "unknown_handler"]
"""The filter as the ledger knows it, and a refusal; what is defined here is imported by its name."""
Status = Literal[
    EventStatus.RECEIVED,
    EventStatus.RUNNING,
    EventStatus.WAITING,
    EventStatus.DONE,
    EventStatus.DEAD,
    EventStatus.DISCARDED,
    EventStatus.IGNORED,
    EventStatus.HELD,
    EventStatus.LOST,
]


def _of(name: str) -> Any:  # noqa: ANN401  a field of any type
    return Field(None, description=FIELDS[name])


class EventFilter(RequestModel):
    """Which events; what is left out takes all."""

    source: Name | None = _of("source")
    provider: Name | None = _of("provider")
    type: Text | None = _of("type")
    status: Status | None = _of("status")
    account: Text | None = _of("account")
    event_id: Text | None = _of("event_id")
    since: Time | None = _of("since")
    until: Time | None = _of("until")
    handler: Text | None = _of("handler")
    error: Text | None = _of("error")
    issue: IssueId | None = _of("issue")
    run_by: Text | None = _of("run_by")

    @property
    def wanted(self) -> Filter:
        """The filter as the ledger knows it."""
        return Filter(**{name: getattr(self, name) for name in FIELDS})

    def wanted_by(self, desk: Desk) -> Filter:
        """Return the filter for who asks. Raises: `Forbidden`."""
        return allowed(desk, self.wanted)


class Hinted(ResponseModel):
    """An answer that doubts the question where it has found nothing."""

    hint: Ours | None = Field(
        default=None,
        description="likely mistake in the question if nothing is found, as a misspelt source",
    )


class HintedPage(Hinted, Page[Row], Generic[Row]):
    """A page of a listing that doubts the question."""


def hint(desk: Desk, asked: RequestModel | Filter, found: object) -> str | None:
    """Return the likely mistake in what was asked for, if nothing is found: an unknown name, or filters at odds."""
    return None if found else next(filter(None, _doubts(desk, asked)), None)


def _doubts(desk: Desk, asked: RequestModel | Filter) -> Iterator[str | None]:
    """Yield doubts about a question, the likeliest first; a doubt that nobody asks for costs no query."""

    def of(field: str) -> str | None:
        return getattr(asked, field, None)

    yield _no_place(desk, of("source"), of("provider"))
    yield from (no_handler(desk, name) for name in (of("handler"), of("run_by")) if name)
    yield _only_dead(of("status"), [field for field in ("handler", "error", "issue") if of(field)])
    yield _no_type(desk, of("type"))


def _no_place(desk: Desk, source: str | None, provider: str | None) -> str | None:
    if {source, provider} <= {None, ALERTS_SOURCE}:
        return None
    try:
        known = desk.settings.sources
    except ConfigError:  # a listing needs nothing else of it
        return None
    if source not in {None, ALERTS_SOURCE, *known}:
        return no_source(str(source), known)
    providers = {each.provider.name for each in known.values()}
    if provider in {None, ALERTS_SOURCE, *providers}:
        return None
    return f"no source has the provider {provider!r}{did_you_mean(str(provider), providers)}"


def _only_dead(status: str | None, fields: list[str]) -> str | None:
    if not fields or status in {None, EventStatus.DEAD}:
        return None
    return f"{fields[0]} finds events with a dead run alone; leave the status out, or use run_by for any run"


def _no_type(desk: Desk, wanted: str | None) -> str | None:
    if wanted is None or "*" in wanted:
        return None
    known = choices.choices(desk.connection).types
    return (
        None if wanted in known else f"no event of late has the type {wanted!r}{did_you_mean(wanted, known)}"
    )


def no_handler(desk: Desk, name: str) -> str | None:
    """Return the refusal of a handler's name that neither workers nor recent runs have; None for one that is known."""
    known = choices.handlers(desk.connection)
    return None if name in known else unknown_handler(name, known)


def allowed(desk: Desk, wanted: Filter) -> Filter:
    """Return the filter unless it looks for what errors say, which is content. Raises: `Forbidden`."""
    if wanted.error is not None:
        desk.require(Scope.BODIES)
    return wanted
