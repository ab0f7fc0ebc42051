"""Steps and waits of handlers: what a person decides about them."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from hookonce.receiver.desk.content import handed_out
from hookonce.receiver.desk.events import EventPath, number_of
from hookonce.receiver.desk.filters import Hinted, hint
from hookonce.receiver.desk.models import Listed, Reference, RequestModel, Text
from hookonce.receiver.desk.refusals import Conflict, Contradictory, NotFound, Unavailable
from hookonce.receiver.desk.registry import Asks, Desk, Plan, action, looks_at
from hookonce.receiver.encryption import KeyMissing
from hookonce.receiver.ledger import steps, waits
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.steps import RunUnderWay, Step
from hookonce.receiver.ledger.waits import MOST_LISTED, Noted, OpenWait


class StepDecision(RequestModel):
    """A decision about a step: it happened, with its result, or it is to be done again."""

    handler: Text | None = Field(
        None, description="whose step it is, where several handlers have one of that name"
    )
    step: Text
    decision: Literal["done", "forget"]
    result: Any = Field(None, description="result of the step, if it is `done`")


@action(scope=Scope.READ)
def list_stopped_steps(desk: Desk) -> Listed[Step]:
    """List the steps that wait for a person, 1000 at most."""
    found = steps.stopped(desk.connection, desk.settings.keyring)
    return Listed[Step](data=handed_out(desk, "stopped steps", found))


@action(scope=Scope.READ)
def list_steps(desk: Desk, which: EventPath) -> Listed[Step]:
    """List the steps of an event."""
    return Listed[Step](data=_steps_of(desk, number_of(desk, which.event)))


def _meant(found: Iterable[Step], which: EventPath, asked: StepDecision) -> Step:
    """Return the step that is meant. Raises: `NotFound`, `Contradictory` for a name that several handlers have."""
    meant = [each for each in found if each.name == asked.step and asked.handler in {None, each.handler}]
    if len(handlers := {each.handler: None for each in meant}) > 1:
        detail = (
            f"several handlers have a step '{asked.step}'; name its handler, one of {', '.join(handlers)}"
        )
        raise Contradictory(detail)
    if not meant:
        of = f" of {asked.handler}" if asked.handler else ""
        raise NotFound(
            f"event {which.event} has no step '{asked.step}'{of}; `hookonce steps show {which.event}` shows them"
        )
    return meant[0]


@action(scope=Scope.REPLAY, looks=looks_at(list_steps, _meant))
def decide_step(desk: Desk, which: EventPath, asked: StepDecision) -> Listed[Step]:
    """Decide about a step of an event; a replay of the event then goes on behind it, or does it again."""
    event = number_of(desk, which.event)
    meant = _meant(_steps_of(desk, event), which, asked)
    step = (event, meant.handler, meant.name)
    try:
        if asked.decision == "done":
            found = steps.mark_done(desk.connection, desk.settings.keyring, step, asked.result, desk.who)
        else:
            found = steps.forget(desk.connection, step, desk.who)
    except RunUnderWay as error:
        raise Conflict(str(error), code="run_under_way") from None
    except KeyMissing as error:
        raise Unavailable(str(error), code="key_missing") from None
    now = _steps_of(desk, event)
    if not found:
        _meant(now, which, asked)
        raise Conflict(
            f"the step '{asked.step}' is done already; `hookonce steps forget` would have it done again",
            code="step_done",
        )
    return Listed[Step](data=now)


def _steps_of(desk: Desk, event: int) -> list[Step]:
    found = steps.of_event(desk.connection, event, desk.settings.keyring)
    return handed_out(desk, f"event {event}", found)


class Waits(Hinted):
    """Runs that wait for another event, and the kinds of events that are noted."""

    data: list[OpenWait]
    noted: list[Noted]


class WaitsQuery(RequestModel):
    """Which waits."""

    event: Reference | None = Field(default=None, description="only of this event")
    handler: Text | None = Field(default=None, description="only of this handler")


_ALL_WAITS = WaitsQuery()


class WakeRequest(RequestModel):
    """The handler that is to go on without what it waits for."""

    handler: Text


@action(scope=Scope.READ)
def list_waits(desk: Desk, asked: WaitsQuery = _ALL_WAITS) -> Waits:
    """List the runs that wait for another event, 1000 at most, and since when such events are noted."""
    event = None if asked.event is None else number_of(desk, asked.event)
    found = waits.listed(desk.connection, MOST_LISTED, event=event, handler=asked.handler)
    return Waits(data=found, noted=waits.noted(desk.connection), hint=hint(desk, asked, found))


def _what_it_waits_for(here: Asks, which: EventPath, asked: WakeRequest) -> Plan:
    found = here.ask(list_waits, asked=WaitsQuery(event=which.event, handler=asked.handler))
    if not found.data:
        raise _no_wait(which, asked)
    return Plan(found, {"which": which, "asked": asked})


@action(scope=Scope.REPLAY, looks=_what_it_waits_for)
def wake(desk: Desk, which: EventPath, asked: WakeRequest) -> None:
    """End the wait of a handler on an event: it goes on as if the time were over."""
    if not waits.give_up(desk.connection, number_of(desk, which.event), asked.handler, desk.who):
        raise _no_wait(which, asked)
    desk.notifies_workers = True


def _no_wait(which: EventPath, asked: WakeRequest) -> Conflict:
    return Conflict(
        f"no run of {asked.handler} on event {which.event} waits for another event, or it is under way; "
        "`hookonce waits list` shows what waits",
        code="no_wait",
    )
