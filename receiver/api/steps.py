"""Steps of handlers: what a person decides about one of which nobody knows whether it happened."""

from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from hookonce.receiver.api.events import EventPath, Step, event_of
from hookonce.receiver.api.models import RequestModel, ResponseModel, Text
from hookonce.receiver.api.operations import Call, operation
from hookonce.receiver.api.problem import Problem
from hookonce.receiver.encryption import KeyMissing
from hookonce.receiver.ledger import steps
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.steps import RunUnderWay


class Steps(ResponseModel):
    """The steps of an event, by handler and in the order they began."""

    data: list[Step]


class StoppedSteps(ResponseModel):
    """Steps that wait for a person, those of the newest events first."""

    data: list[Step]


class StepDecision(RequestModel):
    """What is decided about a step of a handler: that it happened, and its result, or that it be done anew."""

    handler: Text
    step: Text
    decision: Literal["done", "forget"]
    result: Any = Field(None, description="what it gave, if it is `done`")


@operation("GET", "/stopped-steps", scope=Scope.READ)
def list_stopped_steps(call: Call) -> StoppedSteps:
    """List the steps that wait for a person, 1000 at most."""
    found = steps.stopped(call.connection, call.settings.keyring)
    return StoppedSteps(data=[Step.model_validate(asdict(step)) for step in found])


@operation("POST", "/events/{event}/steps", scope=Scope.REPLAY)
def decide_step(call: Call, path: EventPath, body: StepDecision) -> Steps:
    """Decide about a step of an event; a replay of the event then goes on behind it, or does it anew."""
    event = event_of(call, path)
    step = (event, body.handler, body.step)
    try:
        if body.decision == "done":
            found = steps.mark_done(call.connection, call.settings.keyring, step, body.result, call.who)
        else:
            found = steps.forget(call.connection, step, call.who)
    except RunUnderWay as error:
        raise Problem(409, str(error), code="run_under_way") from None
    except KeyMissing as error:
        raise Problem(503, str(error), code="key_missing") from None
    now = steps.of_event(call.connection, event, call.settings.keyring)
    if not found:
        is_done = any((each.handler, each.name) == step[1:] for each in now)
        if is_done:
            raise Problem(409, "the step is done already; `forget` would have it done anew", code="step_done")
        raise Problem(404, f"event {event} has no such step; `/events/{{event}}` shows its steps")
    return Steps(data=[Step.model_validate(asdict(each)) for each in now])


OPERATIONS = (list_stopped_steps, decide_step)
