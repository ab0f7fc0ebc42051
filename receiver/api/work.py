"""Handlers, and pauses of sources and handlers."""

from typing import Literal

from receiver.api.fields import Asked, Shown, Text
from receiver.api.operations import Call, operation
from receiver.api.problem import Problem
from receiver.ledger import desk_pause
from receiver.ledger.tokens import Scope

Kind = Literal["source", "handler"]


class PausePath(Asked):
    """What is paused: a source or a handler, by its name."""

    kind: Kind
    name: Text


class Pause(Shown):
    """A pause: deliveries are taken in all the same, runs wait."""

    kind: Kind
    name: str


class Pauses(Shown):
    """What is paused, by kind and name."""

    data: list[Pause]


class Handler(Shown):
    """A handler that has run lately, or is paused."""

    name: str
    is_paused: bool


class Handlers(Shown):
    """Handlers by name."""

    data: list[Handler]


@operation("GET", "/handlers", scope=Scope.READ)
def list_handlers(call: Call) -> Handlers:
    """List the handlers of recent runs, and those that are paused."""
    paused = {name for kind, name in desk_pause.paused(call.connection) if kind == "handler"}
    names = {*desk_pause.handlers(call.connection), *paused}
    return Handlers(data=[Handler(name=name, is_paused=name in paused) for name in sorted(names)])


@operation("GET", "/pauses", scope=Scope.READ)
def list_pauses(call: Call) -> Pauses:
    """List what is paused."""
    return Pauses(data=[Pause.model_validate(each) for each in _paused(call)])


@operation("PUT", "/pauses/{kind}/{name}", scope=Scope.ADMIN)
def pause(call: Call, path: PausePath) -> Pause:
    """Pause a source or a handler. A handler's name is taken at its word: it may never have run yet."""
    if path.kind == "source" and path.name not in call.settings.sources:
        raise Problem(404, f"no source is called '{path.name}'; `/sources` lists them")
    desk_pause.pause(call.connection, path.kind, path.name, call.who)
    return Pause(kind=path.kind, name=path.name)


@operation("DELETE", "/pauses/{kind}/{name}", scope=Scope.ADMIN, is_atomic=False)
def resume(call: Call, path: PausePath) -> None:
    """End a pause: what waited is due at once, retries included."""
    if not desk_pause.resume(call.connection, path.kind, path.name, call.who):
        raise Problem(404, f"the {path.kind} '{path.name}' is not paused; `/pauses` lists what is")
    call.rings = True


def _paused(call: Call) -> list[dict[str, str]]:
    return [{"kind": kind, "name": name} for kind, name in desk_pause.paused(call.connection)]


OPERATIONS = (list_handlers, list_pauses, pause, resume)
