"""Fourteen tools for agents, by question. Every other action of the desk is asked or planned by its name.

A change is planned: the tool `plan` shows what would be done and gives a confirmation, and only `confirm` does it. An
answer is the desk's own, and so is a refusal. A token is shown the tools that its scopes allow.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_types import Tool, ToolAnnotations
from pydantic import Field

from hookonce.receiver.api.mcp.confirmations import Confirmations
from hookonce.receiver.api.mcp.fence import Fenced, Untitled
from hookonce.receiver.api.mcp.questions import QUESTIONS, Question
from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.desk.forms import read, read_model
from hookonce.receiver.desk.maintenance import get_token
from hookonce.receiver.desk.models import RequestModel
from hookonce.receiver.desk.refusals import Contradictory, Forbidden, Invalid, NotFound
from hookonce.receiver.desk.registry import Action, Asks
from hookonce.receiver.ledger.access.api_tokens import Scope

DeskOf = Callable[[str], Asks]
"""Gives the desk that is asked; what it is asked to do under the same key, it does once."""

_NEXT: Final = (
    "show your user what would be done, and call `confirm` with the confirmation only if they agree"
)
_LOOKS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_DOES: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)
_READS: Final = {name: each for name, each in ACTIONS.items() if not each.changes}
_CHANGES: Final = {name: each for name, each in ACTIONS.items() if each.changes}


class Named(RequestModel):
    """An action by its name, and its arguments; without `arguments` the answer lists those that the action takes."""

    action: str = Field(description="an action's name; empty lists all")
    arguments: dict[str, Any] | None = Field(
        default=None, description="its arguments by name; leave it out to see which there are"
    )


class Confirmation(RequestModel):
    """The confirmation of a plan."""

    confirmation: str = Field(max_length=65_536)


class Tools:
    """The tools of one process."""

    def __init__(self, *, read_only: bool) -> None:
        self._confirmations = Confirmations()
        self._read_only = read_only

    def listed(self, here: Asks) -> list[Tool]:
        """Return the tools that the token's scopes allow. Raises: as `Asks.ask`."""
        scopes = {*here.ask(get_token).scopes}
        tools = [_tool(each) for each in QUESTIONS.values() if {each.scope, Scope.ADMIN} & scopes]
        tools.append(_tool_of("ask", _ASK, Named))
        if not self._read_only and {Scope.REPLAY, Scope.ADMIN} & scopes:
            tools += [_tool_of("plan", _PLAN, Named), _tool_of("confirm", _CONFIRM, Confirmation, _DOES)]
        return tools

    def call(self, desk_of: DeskOf, name: str, arguments: Mapping[str, Any]) -> Fenced:
        """Return the answer of a tool. Raises: `Refused`, and what keeps the inbox from being asked."""
        if question := QUESTIONS.get(name):
            return Fenced.joined(question.answer(desk_of(""), read_model(question.model, arguments)))
        if name == "ask":
            return self._asked(desk_of(""), read_model(Named, arguments))
        if name in {"plan", "confirm"} and self._read_only:
            raise NotFound(f"{name!r} changes something, and this server was started with --read-only")
        if name == "plan":
            return self._planned(desk_of(""), read_model(Named, arguments))
        if name == "confirm":
            return self._confirmed(desk_of, read_model(Confirmation, arguments).confirmation)
        raise NotFound(f"no tool is called {name!r}; `tools/list` has all")

    def _asked(self, here: Asks, asked: Named) -> Fenced:
        action = _action(asked, _READS, "`plan` plans it")
        if isinstance(action, Fenced):
            return action
        if asked.arguments is not None or not action.inputs:
            return Fenced.of(here.ask(action, **read(action, asked.arguments or {})))
        form = _form(action)
        try:
            found = Fenced.of(here.ask(action, **read(action, {})))
        except (Contradictory, Invalid):  # it needs arguments
            return form
        return Fenced({**found.known, "arguments": form.known["arguments"]}, found.said)

    def _planned(self, here: Asks, asked: Named) -> Fenced:
        action = _action(asked, _CHANGES, "`ask` asks it")
        if isinstance(action, Fenced):
            return action
        if asked.arguments is None and action.inputs:
            return _form(action)
        models = read(action, asked.arguments or {})
        token = here.ask(get_token)
        may_do = bool({action.scope, Scope.ADMIN} & {*token.scopes})
        lacks = Forbidden.of(token.name, str(action.scope))
        if not may_do and action.plan_scope not in token.scopes:
            raise lacks
        plan = action.plan(here, **models)
        wanted = {
            role: model.model_dump(mode="json", exclude_none=True) for role, model in plan.models.items()
        }
        shown = Fenced.of(plan.shown)
        sealed = self._confirmations.sealed({"action": action.name, **wanted})
        known = {"action": action.name, "plan": shown.known}
        known |= {"confirmation": sealed, "next": _NEXT} if may_do else {"next": str(lacks)}
        return Fenced(known, {f"plan.{place}": said for place, said in shown.said.items()})

    def _confirmed(self, desk_of: DeskOf, confirmation: str) -> Fenced:
        plan = self._confirmations.opened(confirmation)
        action = ACTIONS[plan["action"]]
        models = {role: model.model_validate(plan[role]) for role, model in action.inputs.items()}
        # By its nonce: base64 spells one confirmation in several ways, and each would be done.
        return Fenced.of(desk_of(plan["nonce"]).ask(action, **models))


_ASK: Final = (
    "Ask any action of the desk that changes nothing: audit, alerts, bulk replays, conflicts, providers, …"
)
_PLAN: Final = (
    "Plan a change: replay, start_bulk_replay, discard_events, mark_issue, pause, resume, reverify_source, "
    "erase_events, prune, … Nothing is changed: the answer shows what would be done, and a confirmation."
)
_CONFIRM: Final = "Do what a plan showed, once, if your user agreed. `confirmation` is the plan's."


def _action(asked: Named, actions: Mapping[str, Action[Any]], elsewhere: str) -> Action[Any] | Fenced:
    """Return the named action; without a name, what there is to choose from. Raises: `NotFound`."""
    if not asked.action:
        return Fenced({"actions": {name: _line(each) for name, each in actions.items()}})
    action = actions.get(asked.action)
    if action is None:
        said = elsewhere if asked.action in ACTIONS else "an empty `action` lists all"
        raise NotFound(f"no action here is called {asked.action!r}; {said}")
    return action


def _form(action: Action[Any]) -> Fenced:
    """Return the arguments that an action takes."""
    return Fenced(
        {"action": action.name, "about": action.about, "arguments": _schema(*action.inputs.values())}
    )


def _line(action: Action[Any]) -> str:
    return action.about.partition("\n")[0]


def _tool(question: Question) -> Tool:
    return _tool_of(question.name, question.about, question.model)


def _tool_of(name: str, about: str, model: type[RequestModel], annotations: ToolAnnotations = _LOOKS) -> Tool:
    return Tool(name=name, description=about, input_schema=_schema(model), annotations=annotations)


def _schema(*models: type[RequestModel]) -> dict[str, Any]:
    """Return the schema of the fields of models, side by side, as short as it can be for a reader of all tools."""
    made: dict[str, Any] = {"type": "object", "properties": {}}
    needed: list[str] = []
    for model in models:
        found = model.model_json_schema(mode="validation", schema_generator=Untitled)
        known = found.get("$defs", {})
        made["properties"] |= {
            name: _short(each, known) for name, each in found.get("properties", {}).items()
        }
        needed += found.get("required", [])
    return {**made, **({"required": needed} if needed else {}), "additionalProperties": False}


def _short(schema: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return a field's schema without what it is when it is left out, and with the models in it written out."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    found = {**schema, **choices[0]} if len(choices) == 1 else dict(schema)
    if "$ref" in found:
        found |= known[found.pop("$ref").rpartition("/")[2]]
    for name in ("default", "examples", "pattern", *(["anyOf"] if len(choices) == 1 else [])):
        found.pop(name, None)
    if "description" in schema:
        found["description"] = schema["description"]
    for name, each in found.get("properties", {}).items():
        found["properties"] = {**found["properties"], name: _short(each, known)}
    if isinstance(found.get("items"), dict):
        found["items"] = _short(found["items"], known)
    return found
