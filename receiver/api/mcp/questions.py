"""The questions that an agent asks most, each a tool: what the state is, what is where, why it failed, what waits."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from hookonce.receiver.desk.access.history import AlertsQuery, list_alerts
from hookonce.receiver.desk.dead_letters import DeadLettersQuery, list_dead_letters
from hookonce.receiver.desk.diffs import diff_event
from hookonce.receiver.desk.events import EventPath, count_events, get_event, get_event_body
from hookonce.receiver.desk.filters import EventFilter, unknown_handler
from hookonce.receiver.desk.forms import read, read_model
from hookonce.receiver.desk.issues import IssuePath, IssuesQuery, get_issue, list_issues
from hookonce.receiver.desk.listed_events import EventsQuery, list_events
from hookonce.receiver.desk.maintenance import get_token
from hookonce.receiver.desk.models import IdInPath, Limit, Listed, Reference, RequestModel, Text
from hookonce.receiver.desk.pauses import Handler, list_handlers, list_pauses
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.registry import Action, Answer, Asks
from hookonce.receiver.desk.rejected import (
    RejectedQuery,
    RejectionPath,
    explain_rejected,
    get_rejected,
    list_rejected,
)
from hookonce.receiver.desk.replays import get_bulk_replay
from hookonce.receiver.desk.searches import SearchQuery, search_bodies
from hookonce.receiver.desk.sources import get_source, list_sources
from hookonce.receiver.desk.stats import get_stats, list_workers
from hookonce.receiver.desk.steps import list_stopped_steps
from hookonce.receiver.desk.words import explain_word
from hookonce.receiver.ledger.access.api_tokens import Scope

Answers = Mapping[str, Answer]
"""Answers of the desk, each under a name; one alone has none."""
_SHOWN_BY: Final[Mapping[str, Action[Any]]] = {
    "issue": get_issue,
    "source": get_source,
    "rejection": get_rejected,
    "bulk": get_bulk_replay,
    "word": explain_word,
}
Kind = Literal["event", "run", "issue", "source", "handler", "rejection", "bulk", "word"]
_ISSUE: Final = re.compile("[0-9a-f]{12}")


class Question(NamedTuple):
    """A tool that only looks: its name, what it answers, what it takes, and the scope that it needs."""

    name: str
    about: str
    model: type[RequestModel]
    answer: Callable[[Asks, Any], Answers]
    scope: Scope = Scope.READ


class Nothing(RequestModel):
    """A question without arguments."""


class Find(EventFilter):
    """Which events, how many of them, and how they are shown."""

    text: Text | None = Field(None, description="stands in the body (needs the scope `bodies`)")
    where: Text | None = Field(None, description="a value in the body: `$.data.id=cus_1` (the same)")
    shown: Literal["events", "counts"] = Field("events", description="`counts`: by type and status")
    limit: Limit = Field(50, description="how many at most")
    cursor: Text | None = Field(None, description="`next` of the page before")


class Show(RequestModel):
    """A thing by its id."""

    id: Reference = Field(
        description="an event (ledger id, source:event_id, how a sender's id begins), a run (`12/shop.credit`), "
        "an issue, a source, a handler; with `kind` also the number of a rejection or a bulk replay, or a word"
    )
    kind: Kind | None = Field(None, description="kind of the `id`, if it could be several things")


class OfEvent(RequestModel):
    """An event."""

    event: Reference


class OfFailure(RequestModel):
    """An event or an issue that failed."""

    id: Reference = Field(description="an event, or an issue")


class OfRejection(RequestModel):
    """A rejected delivery; without a number the newest, of a source maybe."""

    rejection: IdInPath | None = Field(None, description="its number; the newest without one")
    source: Text | None = Field(None, description="the newest of this source")


def _find(here: Asks, asked: Find) -> Answers:
    given = asked.model_dump(include={*EventFilter.model_fields}, exclude_none=True)
    page = {"limit": asked.limit} | ({"cursor": asked.cursor} if asked.cursor else {})
    if asked.shown == "counts":
        return {"": here.ask(count_events, asked=EventFilter(**given))}
    if asked.text is None and asked.where is None:
        return {"": here.ask(list_events, asked=read_model(EventsQuery, given | page))}
    wanted = {"text": asked.text, "where": asked.where}
    return {"": here.ask(search_bodies, asked=read_model(SearchQuery, {**given, **page, **wanted}))}


def _show(here: Asks, asked: Show) -> Answers:
    name, kind = asked.id, asked.kind or _kind(here, asked.id)
    if kind == "handler":
        return {"": _handler(here, name)}
    if kind in _SHOWN_BY:
        action = _SHOWN_BY[kind]
        (field,) = action.inputs["which"].model_fields
        return {"": here.ask(action, **read(action, {field: name}))}
    event, _, handler = name.rpartition("/") if kind == "run" else (name, "", "")
    found = here.ask(get_event, which=EventPath(event=event))
    if kind == "run":
        for rows in ("runs", "steps", "failures", "logs"):
            setattr(found, rows, [each for each in getattr(found, rows) if each.handler == handler])
        if not found.runs:
            raise NotFound(f"event {event} has no run of {handler!r}; `show` the event lists its runs")
    return {"": found}


def _kind(here: Asks, name: str) -> Kind:
    """Return the likeliest kind of an id that comes without one."""
    if name.isdecimal() or ":" in name:
        return "event"
    if _ISSUE.fullmatch(name):
        return "issue"
    event, slash, handler = name.rpartition("/")
    if slash and (event.isdecimal() or (event and "." in handler)):
        return "run"
    if name in {each.name for each in here.ask(list_sources).data}:
        return "source"
    return "handler" if name in {each.name for each in here.ask(list_handlers).data} else "event"


def _handler(here: Asks, name: str) -> Listed[Handler]:
    found = here.ask(list_handlers)
    known = [each.name for each in found.data]
    found.data = [each for each in found.data if each.name == name]
    if not found.data:
        raise NotFound(unknown_handler(name, known))
    return found


def _failure(here: Asks, asked: OfFailure) -> Answers:
    if _ISSUE.fullmatch(asked.id):
        issue = here.ask(get_issue, which=IssuePath(issue=asked.id))
        if issue.event is None:
            return {"issue": issue}
        return {"issue": issue, **_of_event(here, str(issue.event))}
    return _of_event(here, asked.id)


def _of_event(here: Asks, name: str) -> Answers:
    which = EventPath(event=name)
    found = here.ask(get_event, which=which)
    if not {Scope.BODIES, Scope.ADMIN} & {*here.ask(get_token).scopes}:
        return {"event": found}
    return {"event": found, "diff": here.ask(diff_event, which=which)}


def _rejection(here: Asks, asked: OfRejection) -> Answers:
    number = asked.rejection
    if number is None:
        listed = here.ask(
            list_rejected, asked=read_model(RejectedQuery, {"source": asked.source, "limit": 1})
        )
        if not listed.data:
            return {"": listed}
        number = listed.data[0].id
    return {"": here.ask(explain_rejected, which=RejectionPath(rejection=number))}


def _waits(here: Asks, _asked: Nothing) -> Answers:
    return {
        "handlers": here.ask(list_handlers),
        "pauses": here.ask(list_pauses),
        "workers": here.ask(list_workers),
        "stopped_steps": here.ask(list_stopped_steps),
    }


_LISTED: Final = (
    Question("overview", "The state of the inbox: events by source and status, what waits, rejections, open alerts, "
             "pauses. Start here.", Nothing, lambda here, _: {"": here.ask(get_stats)}),
    Question("find", "Find events by source, status, type, account, handler, error, issue, time, or text in bodies.",
             Find, _find),
    Question("show", "Show one thing by its id: an event, run, issue, source, handler, rejection, bulk replay or word.",
             Show, _show),
    Question("body", "The body of an event, redacted as configured.", OfEvent,
             lambda here, asked: {"": here.ask(get_event_body, which=EventPath(event=asked.event))}, Scope.BODIES),
    Question("explain_failure", "Why an event or an issue failed: errors, tracebacks, logs, and how its body differs "
             "from the last one that was done.", OfFailure, _failure),
    Question("explain_rejection", "Why a delivery was rejected, check by check, the likely cause and what to do.",
             OfRejection, _rejection),
    Question("what_waits", "What waits and why: limits, rates, circuit breakers, pauses, workers, stopped steps.",
             Nothing, _waits),
    Question("dead_letters", "Dead events by cause: one row for each handler and error.", DeadLettersQuery,
             lambda here, asked: {"": here.ask(list_dead_letters, asked=asked)}),
    Question("issues", "Failures by handler and place in the code, and how many are dead of each.", IssuesQuery,
             lambda here, asked: {"": here.ask(list_issues, asked=asked)}),
    Question("rejected", "Deliveries that were rejected, newest first, with what to do.", RejectedQuery,
             lambda here, asked: {"": here.ask(list_rejected, asked=asked)}),
    Question("alerts", "Alerts: what is wrong now, and what was.", AlertsQuery,
             lambda here, asked: {"": here.ask(list_alerts, asked=asked)}),
)  # fmt: skip
QUESTIONS: Final[Mapping[str, Question]] = {each.name: each for each in _LISTED}
"""The tools that only look, by name."""
