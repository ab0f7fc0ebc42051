"""*Operations*: everything an operator can ask or do, with a form made of what it takes; what has no page of its own.

What reads is answered at once, and its address can be kept. What changes something is shown as a plan first, with a
second button.
"""

import json
from typing import Any

from flask import Response, abort, make_response, render_template, request

from hookonce.receiver.dashboard.blueprint import admin, ask, context, file_of
from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.desk.forms import facts, fields, read, tables
from hookonce.receiver.desk.models import ResponseModel
from hookonce.receiver.desk.registry import Action, Answer, Octets

NO_PAGE = frozenset({"begin_pull", "pull_events", "pull_event", "get_token"})
"""Actions that need a token: the events for another machine, and the token itself."""
OPERATIONS = {name: each for name, each in ACTIONS.items() if name not in NO_PAGE}
_MAX_FIELD_LENGTH = 60_000


@admin.get("/operations")
def operations() -> str:
    """List them."""
    return render_template("admin/operations.html", operations=list(OPERATIONS.values()))


@admin.get("/operations/<name>")
def operation(name: str) -> Response:
    """Show what an operation takes, and, of one that changes nothing, what it answers to the fields of the address."""
    action = _named(name)
    given = _given(action)
    if action.changes or not (given or "asked" in request.args or not list(fields(action))):
        return _page(action, given)
    cursor = {"cursor": request.args["cursor"]} if "cursor" in request.args else {}
    answer = ask(action, **read(action, given | cursor))
    return file_of(answer) if isinstance(answer, Octets) else _page(action, given, answer=answer)


@admin.post("/operations/<name>")
def operate(name: str) -> Response:
    """Show what would be done; with the plan that was shown, do it."""
    action = _named(name)
    if not action.changes:
        abort(400, "This operation changes nothing; ask it by its address.")
    if "plan" in request.form:
        try:
            plan = json.loads(request.form["plan"])
            models = {role: model.model_validate(plan[role]) for role, model in action.inputs.items()}
        except (ValueError, LookupError, TypeError):
            abort(400, "The plan can't be read; make it again.")
        return _page(action, {}, answer=ask(action, **models), is_done=True)
    given = _given(action)
    with context().desk() as here:
        planned = action.plan(here, **read(action, given))
    asked = {role: model.model_dump(mode="json", exclude_none=True) for role, model in planned.models.items()}
    return _page(action, given, answer=planned.shown, plan=json.dumps(asked))


def _named(name: str) -> Action[Any]:
    if name not in OPERATIONS:
        abort(404, "There is no such operation.")
    return OPERATIONS[name]


def _given(action: Action[Any]) -> dict[str, Any]:
    """Return what was typed into the fields, as their models take it."""
    typed = {each: request.values.get(each.name, "")[:_MAX_FIELD_LENGTH] for each in fields(action)}
    return {each.name: each.read(text) for each, text in typed.items() if text.strip()}


def _page(
    action: Action[Any],
    given: dict[str, Any],
    *,
    answer: Answer = None,
    plan: str = "",
    is_done: bool = False,
) -> Response:
    shown = answer if isinstance(answer, ResponseModel) else None
    return make_response(
        render_template(
            "admin/operation.html",
            action=action,
            fields=list(fields(action)),
            typed={name: _typed(value) for name, value in given.items()},
            facts=facts(shown) if shown else [],
            tables=list(tables(shown)) if shown else [],
            has_answer=shown is not None,
            next=shown.model_dump().get("next") if shown else None,
            plan=plan,
            is_done=is_done,
        )
    )


def _typed(value: object) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
