"""A tool for each action of the desk. What reads is answered; what changes something is planned, and then confirmed.

A tool that changes something says what it would do, and gives a confirmation; only the tool `confirm` does it. Its
arguments are the fields of the action's models, its result is the action's answer, and a refusal is the desk's own.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_types import Tool, ToolAnnotations

from hookonce.receiver.api.mcp.confirmations import Confirmations
from hookonce.receiver.api.mcp.fence import SAID, Fenced, Untitled, schema
from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.desk.arguments import read
from hookonce.receiver.desk.maintenance import get_token
from hookonce.receiver.desk.models import RequestModel
from hookonce.receiver.desk.refusals import Invalid, NotFound, Refused
from hookonce.receiver.desk.registry import Action, Asks
from hookonce.receiver.ledger.access.api_tokens import Scope

DeskOf = Callable[[str], Asks]
"""Gives the desk that is asked; what it is asked to do under the same key, it does once."""

CONFIRM: Final = "confirm"
_NEXT: Final = (
    f"show your user what would be done, and call `{CONFIRM}` with the confirmation only if they agree"
)
_PLANS: Final = f"Changes nothing: it gives a plan, which `{CONFIRM}` does."
_LOOKS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_DOES: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


class Tools:
    """The tools of one process."""

    def __init__(self, *, read_only: bool) -> None:
        self._confirmations = Confirmations()
        self._actions = {name: each for name, each in ACTIONS.items() if not (read_only and each.changes)}
        self._has_confirm = not read_only

    @property
    def listed(self) -> list[Tool]:
        """All of them, in the order of the desk's list."""
        return [_tool(each) for each in self._actions.values()] + [_CONFIRM] * self._has_confirm

    def call(self, desk_of: DeskOf, name: str, arguments: Mapping[str, Any]) -> Fenced:
        """Do what a tool does. Raises: `Refused`, and what keeps the inbox from being asked."""
        if name == CONFIRM and self._has_confirm:
            return self._confirmed(desk_of, _only(arguments, "confirmation"))
        action = self._actions.get(name)
        if action is None:
            if name in {*ACTIONS, CONFIRM}:
                raise NotFound(f"{name!r} changes something, and this server was started with --read-only")
            raise NotFound(f"no tool is called {name!r}; `tools/list` has all")
        models = read(action, arguments)
        if not action.changes:
            return Fenced.of(desk_of("").ask(action, **models))
        return self._planned(desk_of(""), action, models)

    def _planned(self, here: Asks, action: Action[Any], models: Mapping[str, RequestModel]) -> Fenced:
        token = here.ask(get_token)
        if not {action.scope, Scope.ADMIN} & {*token.scopes}:
            raise Refused(f"the token '{token.name}' lacks the scope {action.scope}", code="forbidden")
        plan = action.plan(here, **models)
        asked = {
            role: model.model_dump(mode="json", exclude_none=True) for role, model in plan.models.items()
        }
        shown = Fenced.of(plan.shown)
        sealed = self._confirmations.sealed({"action": action.name, **asked})
        known = {"action": action.name, "plan": shown.known, "confirmation": sealed, "next": _NEXT}
        return Fenced(known, {f"plan.{place}": said for place, said in shown.said.items()})

    def _confirmed(self, desk_of: DeskOf, confirmation: str) -> Fenced:
        plan = self._confirmations.opened(confirmation)
        action = self._actions[plan["action"]]
        models = {role: model.model_validate(plan[role]) for role, model in action.inputs.items()}
        # By its nonce: base64 spells one confirmation in several ways, and each would be done.
        return Fenced.of(desk_of(plan["nonce"]).ask(action, **models))


def _only(arguments: Mapping[str, Any], name: str) -> str:
    if arguments.keys() != {name} or not isinstance(arguments[name], str):
        raise Invalid(f"expected {name!r}, a text, and nothing else")
    return str(arguments[name])


def _tool(action: Action[Any]) -> Tool:
    about = f"{action.about}\n\n{_PLANS}" if action.changes else action.about
    return Tool(
        name=action.name,
        description=f"{about} Needs the scope `{action.scope}`." if action.changes else about,
        input_schema=_input_schema(action),
        output_schema=_plan_schema(action) if action.changes else schema(action.answer),
        annotations=_LOOKS,
    )


def _input_schema(action: Action[Any]) -> dict[str, Any]:
    """Return the schema of the fields of all its models, side by side."""
    made: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "$defs": {}}
    for model in action.inputs.values():
        found = model.model_json_schema(mode="validation", schema_generator=Untitled)
        for part in ("properties", "$defs"):
            made[part] |= found.get(part, {})
        made["required"] += found.get("required", [])
    return {**made, "additionalProperties": False}


def _plan_schema(action: Action[Any]) -> dict[str, Any]:
    text = {"type": "string"}
    known = {"action": {"const": action.name}, "plan": {"type": "object"}, "confirmation": text, "next": text}
    return {"type": "object", "properties": {**known, "said": SAID}, "required": list(known)}


_CONFIRM: Final = Tool(
    name=CONFIRM,
    description="Do what a plan said, once, if your user agreed. `confirmation` is the plan's.",
    input_schema={
        "type": "object",
        "properties": {"confirmation": {"type": "string", "maxLength": 65_536}},
        "required": ["confirmation"],
        "additionalProperties": False,
    },
    annotations=_DOES,
)
